"""What is read alike of objects of whatever kind: which one it is, when it was made and submitted.

What each kind says beside that belongs to its parser.
"""

from collections.abc import Callable
from typing import Any

from collectors.attribution import told
from collectors.quantities import (
    LAST_INSTANT,
    Unusable,
    micros,
    needed,
    part,
    parts,
    words,
)
from collectors.source import Note, Settings, Version, silent
from models.gpus import canonical

Row = dict[str, Any]
DAY = 86_400_000_000
MODEL_KEYS = (
    "nvidia.com/gpu.product",
    "cloud.google.com/gke-accelerator",
    "amd.com/gpu.product-name",
)


def identity(version: Version, is_namespaced: bool = True) -> tuple[dict[str, Any], str, str, str]:
    """Metadata, uid, namespace and name; Unusable where they are not there."""
    meta = part(version.object.get("metadata"))
    uid = needed(meta.get("uid"), "no_uid")
    name = needed(meta.get("name"), "no_name")
    namespace = needed(meta.get("namespace"), "no_namespace") if is_namespaced else ""
    return meta, uid, namespace, name


def created(meta: dict[str, Any], observed: int) -> int:
    """When the object was made: never a day after it was seen."""
    instant = micros(meta.get("creationTimestamp"))
    if instant is None:
        raise Unusable("no_creation", "creationTimestamp")
    if instant > observed + DAY:
        raise Unusable("absurd_instant", f"created {meta['creationTimestamp']}")
    return instant


def submitted(
    settings: Settings, labels: dict[str, str], annotations: dict[str, str], note: Note
) -> int | None:
    """When an object was submitted, if a label or annotation says it."""
    value = told(settings.submitted_keys, labels, annotations)
    if value is None:
        return None
    try:
        if value.isascii() and value.isdigit():
            seconds = int(value)
            return seconds * 1_000_000 if seconds < LAST_INSTANT // 1_000_000 else seconds * 1000
        return micros(value)
    except Unusable as error:
        note("bad_submission_time", error.example)  # the object itself is good
        return None


def asked_model(spec: dict[str, Any]) -> str | None:
    """The one GPU model that a pod's selector or required affinity asks for."""
    selector = words(spec.get("nodeSelector"))
    for key in MODEL_KEYS:
        if key in selector:
            return canonical(selector[key])
    affinity = part(part(spec.get("affinity")).get("nodeAffinity"))
    needs = part(affinity.get("requiredDuringSchedulingIgnoredDuringExecution"))
    models = set()
    for term in parts(needs.get("nodeSelectorTerms")):
        for match in parts(term.get("matchExpressions")):
            if match.get("key") in MODEL_KEYS and match.get("operator") == "In":
                models |= {canonical(str(value)) for value in match.get("values") or []}
    return models.pop() if len(models) == 1 else None


def node_needs(spec: dict[str, Any]) -> dict[str, list[str]]:
    """The node labels that a pod needs, each with the values that do; without values where its
    affinity asks for more than one of some values: that is not judged.
    """
    needs = {key: [value] for key, value in words(spec.get("nodeSelector")).items()}
    affinity = part(part(spec.get("affinity")).get("nodeAffinity"))
    terms = parts(
        part(affinity.get("requiredDuringSchedulingIgnoredDuringExecution")).get(
            "nodeSelectorTerms"
        )
    )
    if len(terms) > 1 or any(term.get("matchFields") for term in terms):
        needs[""] = []  # no label's key
    for match in parts(terms[0].get("matchExpressions")) if len(terms) == 1 else []:
        key, is_in = str(match.get("key")), match.get("operator") == "In"
        needs[key] = [str(value) for value in match.get("values") or ()] if is_in else []
        if key in words(spec.get("nodeSelector")):
            needs[key] = []
    return dict(sorted(needs.items()))


def guarded(parse: Callable[[Version, Settings, Note], Row]):
    """A parser that answers an object of whatever shape: with a row, or with Unusable."""

    def guarded(version: Version, settings: Settings, note: Note = silent) -> Row:
        try:
            return parse(version, settings, note)
        except (TypeError, AttributeError, KeyError, IndexError, ValueError) as error:
            raise Unusable("malformed", f"{type(error).__name__}: {error}"[:80]) from error

    guarded.__doc__ = parse.__doc__
    return guarded
