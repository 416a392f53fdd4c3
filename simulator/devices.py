"""What the simulated GPUs are: models, MIG profiles, and the layouts that a card allows.

Which node has which card is in `pools`.
"""

from fractions import Fraction
from functools import cache
from typing import NamedTuple


class Model(NamedTuple):
    """A GPU model: its canonical name, NVIDIA's spelling, and how MIG cuts it."""

    name: str
    product: str
    memory_mib: int
    slices: tuple[int, int]  # compute, memory; (0, 0): no MIG
    profiles: dict[str, tuple[int, int]]  # MIG profile -> compute and memory slices


EIGHTHS = ((1, 1), (1, 2), (2, 2), (3, 4), (4, 4), (7, 8))


def _eighths(*names: str) -> dict[str, tuple[int, int]]:
    return dict(zip(names, EIGHTHS, strict=True))


_80GB = _eighths("1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb")
_40GB = _eighths("1g.5gb", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb")
_141GB = _eighths("1g.18gb", "1g.35gb", "2g.35gb", "3g.71gb", "4g.71gb", "7g.141gb")

MODELS = {
    model.name: model
    for model in (
        Model("h100-80gb", "NVIDIA-H100-80GB-HBM3", 81559, (7, 8), _80GB),
        Model("h200-141gb", "NVIDIA-H200", 143771, (7, 8), _141GB),
        Model("a100-80gb", "NVIDIA-A100-SXM4-80GB", 81920, (7, 8), _80GB),
        Model("a100-40gb", "NVIDIA-A100-SXM4-40GB", 40960, (7, 8), _40GB),
        Model(
            "a30-24gb",
            "NVIDIA-A30",
            24576,
            (4, 4),
            {"1g.6gb": (1, 1), "2g.12gb": (2, 2), "4g.24gb": (4, 4)},
        ),
        Model("l40s", "NVIDIA-L40S", 46068, (0, 0), {}),
        Model("v100-32gb", "Tesla-V100-SXM2-32GB", 32768, (0, 0), {}),
        Model("t4", "Tesla-T4", 15360, (0, 0), {}),
    )
}

STARTS = {
    (1, 1): range(7),
    (1, 2): range(0, 8, 2),
    (2, 2): range(0, 6, 2),
    (3, 4): (0, 4),
    (4, 4): (0,),
    (7, 8): (0,),
}
"""Where an instance may begin on an eight-slice card, counted in memory slices."""


def exact_share(model: Model, profile: str) -> Fraction:
    """The part of a GPU that one MIG device is: the larger of its compute and memory parts."""
    compute, memory = model.profiles[profile]
    return max(Fraction(compute, model.slices[0]), Fraction(memory, model.slices[1]))


def per_gpu(model: Model, profile: str) -> int:
    """How many devices of one MIG profile a card of the model takes."""
    compute, memory = model.profiles[profile]
    if model.slices == (7, 8):
        return len(STARTS[compute, memory])
    return model.slices[0] // compute


@cache
def layouts() -> tuple[tuple[tuple[int, int], ...], ...]:
    """The 77 layouts of an eight-slice card, partly filled ones among them; 18 exceed one GPU.

    A layout is the multiset of its instances, not where they lie: 723 placements (the empty one
    included, 78 of them maximal) make 77 multisets that are not empty.
    """
    found = {tuple(sorted(kind for kind, _ in placed)) for placed in placements()}
    return tuple(sorted(found - {()}))


def placements() -> set[frozenset[tuple[tuple[int, int], int]]]:
    """Every set of (instance, start) without overlap of memory or excess of compute."""
    seen: set[frozenset[tuple[tuple[int, int], int]]] = {frozenset()}
    open_ = list(seen)
    while open_:
        placed = open_.pop()
        for extra in _room(placed):
            larger = placed | {extra}
            if larger not in seen:
                seen.add(larger)
                open_.append(larger)
    return seen


def _room(placed: frozenset[tuple[tuple[int, int], int]]) -> list[tuple[tuple[int, int], int]]:
    taken = {start + i for (_, memory), start in placed for i in range(memory)}
    compute = sum(kind[0] for kind, _ in placed)
    return [
        (kind, start)
        for kind, starts in STARTS.items()
        for start in starts
        if compute + kind[0] <= 7 and not taken & set(range(start, start + kind[1]))
    ]
