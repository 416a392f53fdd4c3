"""What of an object is not kept: bulk without meaning, and whatever is or looks like a secret.

Objects are kept whole but for this list, for history cannot be collected again. It is the same for
every kind, since any of them may hold a pod's template at any depth.
"""

import re
from fnmatch import fnmatchcase
from typing import Any

import yaml

WITHHELD = "withheld"
LOOKS_SECRET = "***looks_secret***"
APPLIED = (
    "kubectl.kubernetes.io/last-applied-configuration",
    "objectset.rio.cattle.io/applied",
    "kapp.k14s.io/original",
    "banzaicloud.com/last-applied",
)
"""Annotations with the whole object as it was applied, its variables too."""
KEPT_ENV = (
    *("NCCL_*", "UCX_*", "FI_*", "RCCL_*", "TORCH_NCCL_*", "PET_*", "MASTER_*", "WORLD_SIZE"),
    *("*NNODES", "NVIDIA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"),
)
"""Variables whose values tell how a job talks, and no secret."""

_WORDS = (
    r"(?:pass(?:word|wd|phrase)|passwd|secret|token(?!iz)|api[-_.]?key|access[-_.]?key|auth[-_.]?key"
    r"|private[-_.]?key|credentials?|bearer|authorization)"
)
_NAME = re.compile(_WORDS, re.IGNORECASE)
_REFERENCE = re.compile(
    r"(?:name|names|ref|path|paths|file|dir|policy|class|type|seconds|mode|count|size|url"
    r"|kind|id|len(?:gth)?|limit|tokens|namespace)$",
    re.IGNORECASE,
)
"""What a name ends in that only tells where a secret is, or how much of something."""
_ASSIGNED = re.compile(
    rf"({_WORDS}[\w.-]{{0,60}})([\"']?\s*[=:]\s*|\s+)(\"[^\"]*\"|'[^']*'|[^\s\"',;&|]+)",
    re.IGNORECASE,
)
_EVIDENT = re.compile(
    # With capitals, or as no name of Kubernetes can be: `hf-llama-finetune-worker-0` is a pod.
    r"\b(?:hf|ghp|gho|ghs|ghu|glpat|xox[abprs]|sk|pk|npm|pypi|dop_v1)"
    r"(?:_|-(?=[a-z0-9_-]{0,99}[A-Z]|[0-9a-f]{32}\b))[A-Za-z0-9_-]{16,}"
    r"|\bgithub_pat_\w{20,}|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bAIza[\w-]{30,}"
    r"|\beyJ[\w-]{8,800}\.[\w-]{8,}\.[\w-]*"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)"
)
_USERINFO = re.compile(r"(\b[a-z][a-z0-9+.-]{0,30}://[^\s/@:]*:)[^\s/@]+(?=@)", re.IGNORECASE)
_BEARER = re.compile(r"\b(bearer|basic)\s+[\w.+/=~-]{8,}", re.IGNORECASE)
_VARIABLES = re.compile(
    r"""\benv(?:_vars)?\\*["']?\s*:\s*[\[{]"""
    r"""|^[ \t-]*["']?env(?:_vars)?["']?[ \t]*:[ \t]*(?:[\[{#&!].*)?\r?$""",
    re.MULTILINE,
)
"""In a text that is YAML or JSON, such as Ray's runtimeEnvYAML: variables follow."""
_SUSPECT = re.compile(
    rf"{_WORDS}|\b(?:hf|ghp|gho|ghs|ghu|glpat|xox[abprs]|sk|pk|npm|pypi|dop_v1)[-_]|github_pat_"
    r"|AKIA|ASIA|AIza|eyJ|BEGIN|://[^\s/@]*@|basic",
    re.IGNORECASE,
)
"""What must be in a text for any of the others to find something."""


def scrubbed(item: dict[str, Any]) -> dict[str, Any]:
    """The object without what is not kept; it is changed in place where it is cheaper."""
    meta = item.get("metadata")
    if isinstance(meta, dict):
        meta.pop("managedFields", None)
        annotations = meta.get("annotations")
        if isinstance(annotations, dict):
            for name in APPLIED:
                annotations.pop(name, None)
    _walk(item)
    return item


def _walk(value: Any) -> None:
    """Everything below a map or a list, changed in place."""
    stack = [value]
    while stack:
        here = stack.pop()
        if isinstance(here, dict):
            for key, inner in here.items():
                if isinstance(inner, str):
                    is_secret = inner and names_secret(str(key))  # a key of YAML may be a number
                    here[key] = LOOKS_SECRET if is_secret else text(inner)
                elif key == "env" and isinstance(inner, list):
                    stack += [each for each in inner if not _is_variable(each)]
                elif key in ("env", "env_vars") and isinstance(inner, dict):
                    for name in inner:
                        if not _is_kept(str(name)):
                            inner[name] = WITHHELD
                        elif isinstance(inner[name], str):
                            inner[name] = text(inner[name])
                elif key in ("args", "command") and isinstance(inner, list):
                    here[key] = arguments(inner)
                elif isinstance(inner, dict | list):
                    stack.append(inner)
            if isinstance(here.get("value"), str) and names_secret(str(here.get("name", ""))):
                here["value"] = LOOKS_SECRET
        elif isinstance(here, list):
            for place, inner in enumerate(here):
                if isinstance(inner, str):
                    here[place] = text(inner)
                elif isinstance(inner, dict | list):
                    stack.append(inner)


def _is_variable(entry: Any) -> bool:
    """Whether it is a variable; then its value is gone, unless it tells how a job talks."""
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        return False
    if "value" in entry and not _is_kept(entry["name"]):
        entry["value"] = WITHHELD
    elif isinstance(entry.get("value"), str):
        entry["value"] = text(entry["value"])
    return True


def _is_kept(variable: str) -> bool:
    if names_secret(variable) or variable.endswith("KEY"):  # such as MASTER_KEY
        return False
    return any(fnmatchcase(variable, kept) for kept in KEPT_ENV)


def arguments(words: list[Any]) -> list[Any]:
    """A command's words: what follows a flag that names a secret is masked."""
    found: list[Any] = []
    is_next = False
    for word in words:
        if not isinstance(word, str):
            found.append(word)
            continue
        if is_next and not word.startswith("-"):
            found.append(LOOKS_SECRET)
            is_next = False
            continue
        flag, assigned, _ = word.partition("=")
        is_flag = word.startswith("-") and " " not in flag and names_secret(flag)
        is_next = is_flag and not assigned
        found.append(f"{flag}={LOOKS_SECRET}" if is_flag and assigned else text(word))
    return found


def names_secret(name: str) -> bool:
    """Whether a name is that of a secret itself, not of the place where it lies."""
    return bool(_NAME.search(name)) and not _REFERENCE.search(name)


def text(value: str) -> str:
    """A text in which what looks like a secret is masked."""
    if _VARIABLES.search(value):
        value = _document(value)
    if not _SUSPECT.search(value):
        return value
    value = _EVIDENT.sub(LOOKS_SECRET, value)
    value = _USERINFO.sub(rf"\1{LOOKS_SECRET}", value)
    value = _BEARER.sub(rf"\1 {LOOKS_SECRET}", value)
    return _ASSIGNED.sub(_masked, value)


def _document(value: str) -> str:
    """A YAML or JSON text without its variables; nothing of what cannot be read as such."""
    try:
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(value, LOADER)):
            return WITHHELD  # a few lines may be gigabytes
        found = yaml.load(value, LOADER)
        if not isinstance(found, dict | list):
            return WITHHELD  # a command with JSON in it
        _walk(found)
        return yaml.dump(found, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True)
    except (yaml.YAMLError, ValueError, RecursionError):
        return WITHHELD


LOADER = yaml.CSafeLoader
_BEFORE = re.compile(r"/?[\w.-]*$")
"""What a name begins with; looked for backwards, since a text may be long and without a space."""


def _masked(found: re.Match[str]) -> str:
    name, between, _ = found.groups()
    before = _BEFORE.search(found.string, max(0, found.start() - 80), found.start())
    begun = before.group() if before else ""
    if between == ":" and begun.startswith("/"):
        return found.group()  # an image and its tag
    is_spaced = not between.strip("\"' \t\n")
    # `--token abc` in a script is a flag; "the token expired" is a sentence.
    if not names_secret(name) or (is_spaced and not f"{begun}{name}".startswith("-")):
        return found.group()
    return f"{name}{between}{LOOKS_SECRET}"
