"""HAMi's annotations: the cards that a node registers, and what a pod was given of them.

Entries are (device UUID, MiB, hundredths of the cores). The share that follows belongs to `sql`.
"""

from typing import Any

import orjson

from collectors.source import Unusable

REGISTER = "hami.io/node-nvidia-register"
ALLOCATED = "hami.io/vgpu-devices-allocated"
PHASE = "hami.io/bind-phase"

Entry = tuple[str, int, int]


def _number(value: Any) -> int:
    try:
        found = int(value)
    except (TypeError, ValueError):
        raise Unusable("bad_hami_entry", repr(value)[:80]) from None
    if not 0 <= found < 2**53:
        raise Unusable("bad_hami_entry", str(value)[:80])
    return found


def registered(text: str) -> tuple[Entry, ...]:
    """The cards of a node; the newer spelling is JSON, the older `uuid,count,mem,core,…:`."""
    if text.lstrip().startswith("["):
        try:
            cards = orjson.loads(text)
        except orjson.JSONDecodeError:
            raise Unusable("bad_hami_entry", text[:80]) from None
        return tuple(
            (str(card["id"]), _number(card["devmem"]), _number(card.get("devcore", 100)))
            for card in cards
        )
    found = []
    for entry in filter(None, text.split(":")):
        fields = entry.split(",")
        if len(fields) < 4:
            raise Unusable("bad_hami_entry", entry[:80])
        found.append((fields[0], _number(fields[2]), _number(fields[3])))
    return tuple(found)


def allocated(text: str) -> tuple[Entry, ...]:
    """What a pod was given: one segment a container, each of `uuid,type,mem,cores:`."""
    found = []
    for entry in text.replace(";", ":").split(":"):
        if not entry.strip():
            continue
        fields = entry.split(",")
        if len(fields) < 4:
            raise Unusable("bad_hami_entry", entry[:80])
        found.append((fields[0], _number(fields[2]), _number(fields[3])))
    return tuple(found)
