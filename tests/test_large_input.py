"""A trace of 2 GB: it is read in bounded memory, and gives the figures of its few rows in time.

What bad rows come to is in test_bad_input.py. A process of its own runs each import, so that the
peak of its memory is its own.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bad_input import TRACE, published, swapped, written

MEGABYTE = 10**6
MOST = 1300 * MEGABYTE
"""What an import may take, whatever the file's size."""
GROWTH = 1.3
"""A file four times as long may take so much more, where both are longer than any buffer."""
BLOCK = 20_000
RUN = """
import sys
from pathlib import Path
from pipelines.cli import app
try:
    app(sys.argv[1:])
finally:  # what getrusage tells counts that of the process that started this one
    print(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])
"""


def lengthened(path: Path, size: int) -> None:
    """More and more pods of later days, until the file has its size."""
    number, width = 0, 0
    with path.open("a") as file:
        while width < size:
            width += file.write(
                "".join(
                    f"late-{n},{86400 + n % 800000},{86460 + n % 800000},{86520 + n % 800000},"
                    f"{90000 + n % 800000},one,Succeeded,1,a\n"
                    for n in range(number, number + BLOCK)
                )
            )
            number += BLOCK


def first_day(folder: Path, size: int) -> tuple[int, list[list[tuple]] | None]:
    """The memory that the import of a trace's first day took, in bytes, and its figures."""
    ten_days = swapped("given/mapping.yaml", "to: 86400", "to: 900000")
    path = written(folder, TRACE, "site", ten_days)
    pods = folder / "given/pods.csv"
    lengthened(pods, size)
    answer = subprocess.run(
        [sys.executable, "-c", RUN, "run", "--config", str(path), "--to", "2026-03-01"],
        env=os.environ | {"GPULEDGER_HOME": str(folder / "home"), "POLARS_MAX_THREADS": "2"},
        capture_output=True,
        text=True,
        check=False,
    )
    pods.unlink()
    assert answer.returncode == 0, answer.stdout + answer.stderr
    peak = int(answer.stdout.split()[-1]) * 1024
    return peak, published(folder / "home", "site")


@pytest.mark.whole
def test_a_trace_of_two_gigabytes_takes_no_more_memory_than_a_quarter_of_it(tmp_path):
    size = 2000 * MEGABYTE
    _, sound = first_day(tmp_path / "sound", 0)
    small, of_small = first_day(tmp_path / "small", size // 4)
    large, of_large = first_day(tmp_path / "large", size)
    assert of_small == of_large == sound
    said = f"{small / MEGABYTE:.0f} MB became {large / MEGABYTE:.0f} MB"
    assert large < min(small * GROWTH, MOST), said
