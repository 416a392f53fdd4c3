"""The configuration that `init` writes: the example with what is optional commented out.

What a key means is said in `models.config` and beside it in examples/gpuledger.yaml.
"""

import re
from pathlib import Path

import typer

from pipelines.cli_common import stop

EXAMPLE = Path(__file__).parents[1] / "examples" / "gpuledger.yaml"
KEPT = ("lake", "clusters", "policies", "import")
"""Blocks that stand as they are; the others are examples to fill in."""
HEAD = """\
# gpuledger's configuration, written by `gpuledger init`. Every key is checked; an unknown one is
# refused with the nearest valid one. Fill in `path`, or the `url` of a Prometheus, then:
# gpuledger doctor, gpuledger run.
# Blocks behind a # are optional: take the # away and put your own values in.
"""


def text() -> str:
    """The commented configuration."""
    lines = EXAMPLE.read_text(encoding="utf-8").splitlines()
    lines = [line for number, line in enumerate(lines) if number or not line.startswith("#")]
    is_kept, found = True, []
    for line in lines:
        if match := re.match(r"([a-z_]+):", line):
            is_kept = match[1] in KEPT
        found.append(line if is_kept or not line.strip() else f"# {line}")
    return HEAD + "\n".join(found).rstrip() + "\n"


def write(path: Path) -> None:
    """Write it where nothing is yet."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text())
    except FileExistsError:
        stop(f"{path} is there already: move it away, or name another file")
    except OSError as error:
        stop(f"{path} cannot be written: {error.strerror}")
    typer.echo(f"wrote {path}\nnext: name your sources in it, then `gpuledger doctor`")
