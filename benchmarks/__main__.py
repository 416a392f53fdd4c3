"""The command: which fleets are measured, and how the figures are printed.

`uv run python -m benchmarks` measures all; `day --gpus 1000 --holds 20000` one, smaller. How a run
is measured belongs in `measure`.
"""

import argparse
import tempfile
from pathlib import Path

from benchmarks.fleet import Size
from benchmarks.measure import SECOND_DAY, Measured, apart, copied, run, swept
from benchmarks.refresh import refreshed
from benchmarks.rows import write
from benchmarks.source import Rows

SIZES = {
    "day": Size(10_000, 1, 200_000, is_sampled=True),
    "refresh": Size(2_000, 1, 40_000, is_sampled=True),
    "quarter": Size(2_000, 90, 25_000),
}
TRIES = 3
"""Reruns of a day, of which the fastest counts: it is the least disturbed one."""


def main(argv: list[str] | None = None) -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("what", nargs="?", choices=[*SIZES, "all"], default="all")
    parser.add_argument("--gpus", type=int)
    parser.add_argument("--days", type=int)
    parser.add_argument("--holds", type=int, help="pods that hold GPUs, in all days together")
    parser.add_argument("--heartbeat", type=int, default=5, help="minutes between node versions")
    told = parser.parse_args(argv)
    for name in SIZES if told.what == "all" else [told.what]:
        usual = SIZES[name]
        size = Size(
            gpus=told.gpus or usual.gpus,
            days=told.days or usual.days,
            holds=told.holds or usual.holds,
            heartbeat_minutes=told.heartbeat,
            is_sampled=usual.is_sampled,
        )
        with tempfile.TemporaryDirectory(prefix="gpuledger-benchmark-") as folder:
            measure(size, Path(folder), is_refreshed=name == "refresh")


def measure(size: Size, folder: Path, *, is_refreshed: bool = False) -> None:
    """A fleet through the whole pipeline, beside a plain copy; with several days also reruns."""
    print(f"\n{size.gpus:,} GPUs x {size.days} days", flush=True)
    home, rows = folder / "home", folder / "rows"
    count = apart(write, size, rows)
    print(f"  {count:,} versions of objects were recorded", flush=True)
    whole = apart(run, home, Rows(rows))
    show(whole, size)
    plain = apart(copied, home, folder)
    print(
        f"  DuckDB reads and writes the same rows as plain Parquet in {plain:.1f} s: "
        f"the run took {whole.seconds / plain:.1f} times as long",
        flush=True,
    )
    if size.is_sampled:
        sweep = apart(swept, home)
        computed = [step for step in whole.steps if step.startswith(("core.", "mart."))]
        tables = sum(whole.steps[step] for step in computed)
        cpu = sum(whole.cpu_steps[step] for step in computed)
        print(
            f"  core and mart took {tables:.1f} s ({cpu:.1f} s of CPU); "
            f"DuckDB reads the GPUs' samples and sorts them once in "
            f"{sweep:.1f} s: {tables / sweep:.1f} times as long",
            flush=True,
        )
    if is_refreshed:
        print("  the open hour again, until a page has its first figures:", flush=True)
        show(apart(refreshed, home, rows), size)
    if size.days > 1:
        few = folder / "few"
        apart(run, few, Rows(rows, 2))
        # In turn, so that whatever else the machine does disturbs both alike.
        again = [
            (apart(run, few, Rows(rows, 2), SECOND_DAY), apart(run, home, Rows(rows), SECOND_DAY))
            for _ in range(TRIES)
        ]
        beside_few, beside_all = (min(m.seconds for m in each) for each in zip(*again, strict=True))
        print(
            f"  the second day again: {beside_few:.1f} s beside 1 other day, {beside_all:.1f} s "
            f"beside {size.days - 1}: {beside_all / beside_few:.2f} times as long",
            flush=True,
        )


def show(measured: Measured, size: Size) -> None:
    """Print the steps with their rows, then the totals."""
    for step, seconds in measured.steps.items():
        count = measured.counts.get(step)
        rows = "" if count is None else f"{count:>12,} rows"
        cpu = measured.cpu_steps[step]
        print(f"  {step:<24} {seconds:>8.2f} s {cpu:>8.2f} s of CPU {rows}")
    print(
        f"  in all {measured.seconds:.1f} s ({measured.cpu_seconds:.1f} s of CPU), peak memory "
        f"{measured.peak_bytes / 1e9:.2f} GB, {measured.counts['core.holds']:,} holds, "
        f"{measured.rows:,} rows, {measured.rows / measured.seconds:,.0f} rows/s, "
        f"{measured.seconds / size.days:.2f} s per day of the fleet",
        flush=True,
    )


if __name__ == "__main__":
    main()
