"""MIG: which part of its GPU one device of a profile is.

`mig_profiles.csv` has a row for each model and profile: compute and memory slices of the device,
and how many of them a GPU takes at most (NVIDIA's MIG user guide; mig-parted's default layouts).
A profile's name alone does not tell: `1g.10gb` is 2/8 of one model and 1/8 of another. What a
node reports belongs to `collectors`.
"""

import csv
import re
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import NamedTuple

from models.gpus import catalogue

PROFILE = re.compile(r"^(\d+g\.\d+gb)([.+-].+)?$")
COMPUTE_INSTANCE = re.compile(r"^([1-7])c\.(([1-7])g\..+)$")
IN_PRODUCT = re.compile(r"-MIG-(\d+g\.\d+gb(?:[.+]me)?)", re.IGNORECASE)


class Profile(NamedTuple):
    """A MIG profile of one model."""

    compute_slices: int
    memory_slices: int
    max_per_gpu: int


@cache
def profiles() -> dict[tuple[str, str], Profile]:
    """(canonical model, profile) -> its slices."""
    with (Path(__file__).parent / "mig_profiles.csv").open(encoding="utf-8") as file:
        return {
            (model, profile): Profile(*map(int, rest))
            for model, profile, *rest in list(csv.reader(file))[1:]
        }


@cache
def profile_of(model: str, profile: str) -> Profile | None:
    """The profile, whatever its attributes; else None.

    They leave the slices as they are, and only media extensions (`+me`, in names of resources
    `.me`; `+me.all`) are there once a GPU: graphics (`+gfx`) and no media (`-me`) are not.
    """
    match = PROFILE.match(profile.strip().lower())
    if not match:
        return None
    found = profiles().get((model, match[1]))
    if found and (match[2] or "").startswith((".me", "+me")):
        return found._replace(max_per_gpu=1)
    return found


@cache
def share(model: str, profile: str) -> Fraction | None:
    """The part of a GPU that one device is: the larger of its compute and its memory part."""
    found, gpu = profile_of(model, profile), catalogue().get(model)
    if not found or not gpu or not gpu.mig_compute_slices or not gpu.mig_memory_slices:
        return None
    return max(
        Fraction(found.compute_slices, gpu.mig_compute_slices),
        Fraction(found.memory_slices, gpu.mig_memory_slices),
    )


def instance_of(profile: str) -> tuple[str, Fraction]:
    """The GPU instance that a profile is of, and its part of it: 1c.3g.20gb is 1/3 of 3g.20gb.

    Compute instances share their GPU instance's memory, so the compute slices decide.
    """
    match = COMPUTE_INSTANCE.match(profile.strip().lower())
    if not match:
        return profile, Fraction(1)
    return match[2], min(Fraction(1), Fraction(int(match[1]), int(match[3])))


def profile_in(product: str) -> str | None:
    """The profile in a product label of strategy `single`, such as `…-MIG-1g.10gb`."""
    match = IN_PRODUCT.search(product)
    return match[1].lower().replace("+", ".") if match else None
