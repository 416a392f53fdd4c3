"""How a fault of a configuration is worded: file, key path, what is wrong, the nearest valid key.

What is a fault is said where the part is declared.
"""

import difflib
import types
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

_CODES = (
    "AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP "
    "BYN BZD CAD CDF CHF CLP CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP "
    "GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR "
    "KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK "
    "MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR "
    "SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS "
    "UAH UGX USD UYU UZS VED VES VND VUV WST XAF XCD XCG XOF XPF YER ZAR ZMW ZWG"
)
CURRENCIES = frozenset(_CODES.split())
"""ISO 4217 codes of the currencies in use."""


class ConfigError(Exception):
    """The configuration cannot be used; the text names the file and each fault."""

    def __init__(self, path: Path, faults: list[str]):
        super().__init__("\n".join(f"{path}: {fault}" for fault in faults))
        self.path, self.faults = path, faults


def nearest(word: object, known: Iterable[str]) -> str:
    """`; did you mean …?` where a known word is like this one, else the known words if few."""
    words = sorted(known)
    found = difflib.get_close_matches(str(word), words, n=1, cutoff=0.5)
    if found:
        return f"; did you mean {found[0]}?"
    return f"; known: {', '.join(words)}" if 0 < len(words) <= 20 else ""


def described(error: ValidationError, model: type[BaseModel]) -> list[str]:
    """Each fault that validation found: the key's path and what is wrong with it."""
    faults = []
    for detail in error.errors(include_url=False):
        parents, path = _walk(model, detail["loc"])
        if detail["type"] == "extra_forbidden":
            keys = {name for parent in parents for name in fields(parent)}
            faults.append(f"{path}: unknown key{_nearest_key(detail['loc'][-1], keys)}")
        else:
            faults.append(f"{path or 'file'}: {_wording(detail)}")
    return faults


def _nearest_key(key: object, keys: set[str]) -> str:
    found = difflib.get_close_matches(str(key), sorted(keys), n=1, cutoff=0.0)
    return f"; the nearest valid one is {found[0]}" if found else ""


def _wording(detail: Any) -> str:
    message = detail["msg"].removeprefix("Value error, ")
    if detail["type"] == "missing":
        return "is missing"
    if detail["type"] == "string_pattern_mismatch":
        return f"{detail['input']!r} does not fit {detail['ctx']['pattern']}"
    if detail["type"] in ("literal_error", "union_tag_invalid"):
        expected = detail["ctx"].get("expected") or detail["ctx"].get("expected_tags")
        given = detail["ctx"].get("tag", detail["input"])
        words = [word.strip(" '") for word in expected.replace(" or ", ", ").split(",")]
        return f"{given!r} is not one of {', '.join(words)}{_close(given, words)}"
    if detail["type"] in ("tuple_type", "list_type"):
        return "must be a list"
    if detail["type"] in ("model_type", "dict_type", "model_attributes_type"):
        return "must be a mapping of keys"
    if detail["type"] == "union_tag_not_found":
        return "needs its kind"
    given = detail["input"]
    shown = f" (given: {given!r})" if isinstance(given, str | int | float) else ""
    return message[:1].lower() + message[1:] + shown


def _close(given: object, words: list[str]) -> str:
    found = difflib.get_close_matches(str(given), words, n=1, cutoff=0.5)
    return f"; did you mean {found[0]}?" if found else ""


def fields(model: type[BaseModel]) -> dict[str, Any]:
    """The keys of a part, as they are written in the file, and their types."""
    return {(field.alias or name): field.annotation for name, field in model.model_fields.items()}


def _walk(model: type[BaseModel], location: tuple[int | str, ...]) -> tuple[list[Any], str]:
    """The parts that the last key of a location could belong to, and its path as text."""
    here: list[Any] = [model]
    path = ""
    for depth, step in enumerate(location):
        is_last = depth == len(location) - 1
        parents = [m for m in here if isinstance(m, type) and issubclass(m, BaseModel)]
        if isinstance(step, int):
            path += f"[{step}]"
            continue
        if not is_last and (tagged := [m for m in parents if _tag(m) == step]):
            here = tagged
            continue
        path += f".{step}" if path else str(step)
        if is_last:
            return parents, path
        holders = [m for m in parents if step in fields(m)]
        if holders:  # else the step is a key of a dict, whose values are these parts
            here = [part for m in holders for part in _parts(fields(m)[step])]
    return here, path


def _tag(model: type[BaseModel]) -> str | None:
    kind = fields(model).get("kind")
    return get_args(kind)[0] if get_origin(kind) is Literal else None


def _parts(annotation: Any) -> list[Any]:
    """The classes inside an annotation: of lists, dicts, options and unions."""
    if get_origin(annotation) in (tuple, list, dict, Union, types.UnionType, Annotated):
        return [part for inner in get_args(annotation) for part in _parts(inner)]
    return [annotation] if isinstance(annotation, type) else []
