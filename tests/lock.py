"""Locks every dependency: what `uv export` resolves, written into pyproject.toml as constraints.

Run `uv run python -m tests.lock` after changing a dependency; test_house.py tells when that was
forgotten. To take newer versions, run `uv run python -m tests.lock --upgrade`. uv.lock itself is
not committed because it names download hosts; uv resolves it again from these constraints, to the
same versions. Nothing that the product needs when it runs belongs here.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
BLOCK = re.compile(r"^constraint-dependencies = \[\n(.*?)^\]\n", re.MULTILINE | re.DOTALL)
EXPORT = (
    "export --quiet --all-groups --all-extras --no-emit-project"
    " --no-hashes --no-annotate --no-header --format requirements-txt"
)


def exported(*options: str) -> list[str]:
    """Every package that uv resolves for any platform, one `name==version ; marker` each."""
    uv = os.environ.get("UV", "uv")  # `uv run` says which uv runs us
    answer = subprocess.run(
        [uv, *EXPORT.split(), *options],
        cwd=PROJECT.parent,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return answer.stdout.splitlines()


def locked() -> list[str]:
    """The constraints that pyproject.toml holds now."""
    found = BLOCK.search(PROJECT.read_text())
    if found is None:
        raise ValueError("pyproject.toml has no constraint-dependencies block")
    return re.findall(r'"(.*)",', found[1])


def write(pins: list[str]) -> None:
    """Replace the block, and nothing else."""
    lines = "".join(f'    "{pin}",\n' for pin in pins)
    block = f"constraint-dependencies = [\n{lines}]\n"
    PROJECT.write_text(BLOCK.sub(lambda _: block, PROJECT.read_text(), count=1))


def main() -> None:
    """Rewrite the block; with --upgrade, let go of it first."""
    if "--upgrade" in sys.argv[1:]:
        write([])
        write(exported("--upgrade"))
    else:
        write(exported())


if __name__ == "__main__":
    main()
