"""MIG: which part of its GPU one device of a profile is.

`mig_profiles.csv` has a row for each model and profile: compute and memory slices of the device,
and how many of them a GPU takes at most (NVIDIA's MIG user guide; mig-parted's default layouts).
A profile's name alone does not tell: `1g.10gb` is 2/8 of one model and 1/8 of another. What a
node reports belongs to `collectors`.
"""

import csv
import re
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import NamedTuple

from models.gpus import catalogue

PROFILE = re.compile(r"^(\d+g\.\d+gb)([.+-].+)?$")
COMPUTE_INSTANCE = re.compile(r"^([1-7])c\.(([1-7])g\..+)$")
IN_PRODUCT = re.compile(r"-MIG-(\d+g\.\d+gb(?:[.+]me)?)", re.IGNORECASE)


ANY = "*"
MOST_SLICES = 7
"""Compute slices of a GPU that the catalogue lacks."""


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


class Part(NamedTuple):
    """What one device of a profile is of its GPU, by share and apart by compute and memory."""

    share: Fraction
    compute: Fraction
    memory: Fraction
    is_known: bool
    """Whether the catalogue has it; else its compute slices are taken from its name."""


@cache
def part_of(model: str, profile: str) -> Part:
    """The part of a GPU that a device of any profile is, also of a compute instance."""
    name, fraction = instance_of(profile)
    found, gpu, exact = profile_of(model, name), catalogue().get(model), share(model, name)
    if found and gpu and exact is not None:
        compute = Fraction(found.compute_slices, gpu.mig_compute_slices or 1)
        memory = Fraction(found.memory_slices, gpu.mig_memory_slices or 1)
        return Part(exact * fraction, compute * fraction, memory * fraction, True)
    digits = name.strip().split("g", 1)[0]
    slices = int(digits) if digits.isascii() and digits.isdigit() else MOST_SLICES
    assumed = min(Fraction(slices, MOST_SLICES), Fraction(1)) * fraction
    return Part(assumed, assumed, assumed, False)


def parts() -> Iterator[tuple[str, str, Part]]:
    """Model, profile and part: all that the catalogue knows and what is assumed of all others.

    Theirs stand under the model ANY, with the memory ANY, such as `3g.*` and `1c.3g.*`.
    """
    assumed = ((ANY, f"{slices}g.{ANY}") for slices in range(1, MOST_SLICES + 1))
    for model, profile in (*profiles(), *assumed):
        yield model, profile, part_of(model, profile)
        for slices in range(1, int(profile.split("g", 1)[0])):
            instance = f"{slices}c.{profile}"
            yield model, instance, part_of(model, instance)


def profile_in(product: str) -> str | None:
    """The profile in a product label of strategy `single`, such as `…-MIG-1g.10gb`."""
    match = IN_PRODUCT.search(product)
    return match[1].lower().replace("+", ".") if match else None
