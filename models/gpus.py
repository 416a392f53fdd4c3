"""The GPU catalogue: one canonical name for each model, and what is known of it.

Cards that differ in memory, power or bandwidth are rows of their own, since their prices differ
too; a bare name (`h100`) means the SXM form. A row is one GPU as Kubernetes counts them, also where
a card holds several (K80, A16, MI250). An empty figure is one that no public source told.
Columns of `gpus.csv`: `memory_mib` as nvidia-smi or its like shows the total, else from the data
sheet; `tdp_watts` from the data sheet, or the default limit that nvidia-smi shows;
`rest_bare_watts` and `rest_context_watts` typical nvidia-smi readings of an idle card without and
with a CUDA context (orientation: no figure of the accounting rests on memory or watts);
slices from NVIDIA's MIG user guide. What one MIG device is belongs to `mig`.
"""

import csv
import re
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

from models.states import UNKNOWN

SHARING = re.compile(r"(-shared|-mig-[0-9a-z.+-]+|-mig-mixed|-mig-invalid)+$")
VENDORS = re.compile(r"^(nvidia-|tesla-|geforce-)+")


class Gpu(NamedTuple):
    """A model of GPU, and None for what is not known of it."""

    gpu_model_name: str
    aliases: tuple[str, ...]
    memory_mib: int
    tdp_watts: int | None
    rest_bare_watts: int | None
    rest_context_watts: int | None
    mig_compute_slices: int | None
    mig_memory_slices: int | None


@cache
def catalogue() -> dict[str, Gpu]:
    """Every model of the catalogue, by its canonical name."""
    with (Path(__file__).parent / "gpus.csv").open(encoding="utf-8") as file:
        return {
            name: Gpu(name, tuple(filter(None, aliases.split(";"))), int(memory), *rest)
            for name, aliases, memory, *rest in (
                [*row[:3], *(int(value) if value else None for value in row[3:])]
                for row in list(csv.reader(file))[1:]
            )
        }


@cache
def _names() -> dict[str, str]:
    found = {name: name for name in catalogue()}
    for gpu in catalogue().values():
        for alias in gpu.aliases:
            if found.setdefault(alias, gpu.gpu_model_name) != gpu.gpu_model_name:
                raise ValueError(f"gpus.csv: {alias} stands for {found[alias]} and {gpu[0]}")
    return found


@lru_cache(maxsize=4096)
def canonical(text: str | None) -> str:
    """The canonical name of a model however it is spelt; unknown spellings lower-cased."""
    plain = re.sub(r"[\s_/,;()]+", "-", (text or "").strip().lower()).strip("-")
    plain = SHARING.sub("", plain).strip("-")
    if plain in ("", "unknown"):
        return UNKNOWN
    names = _names()
    return names.get(plain) or names.get(VENDORS.sub("", plain)) or plain


def memory_of(model: str) -> int | None:
    """The memory of one GPU of a canonical model, in MiB."""
    gpu = catalogue().get(model)
    return gpu.memory_mib if gpu else None
