"""The folders below GPULEDGER_HOME; opening what lies in them belongs in the other modules."""

import re
from dataclasses import dataclass
from pathlib import Path

from lake.errors import LakeError

RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,199}")
TAKEN = {"lake", "raw", "core", "mart", "meta", "main", "memory", "system", "temp", "sweep"}
"""Names that DuckDB would confuse with a catalog or schema if a run's file had them."""


@dataclass(frozen=True)
class Home:
    """Everything that a command writes lies below this folder."""

    path: Path

    def __post_init__(self):
        object.__setattr__(self, "path", Path(self.path).absolute())

    @property
    def catalog(self) -> Path:
        """The catalogue: which files make up which table at which snapshot."""
        return self.path / "lake" / "catalog.sqlite"

    @property
    def data(self) -> Path:
        """The folder of the tables' files."""
        return self.path / "lake" / "data"

    @property
    def lock(self) -> Path:
        """Held by the one process that writes; its content names that process."""
        return self.path / "lake" / "writer.lock"

    @property
    def mails(self) -> Path:
        """Which mails were sent, and which snapshots they name."""
        return self.path / "mails.sqlite"

    @property
    def runs(self) -> Path:
        """The folder of what unfinished runs have staged."""
        return self.path / "runs"

    def staging(self, run_id: str) -> Path:
        """The run's own database; LakeError if the name could lead out of the folder."""
        if not RUN_ID.fullmatch(run_id) or run_id.lower().split(".")[0] in TAKEN:
            raise LakeError(
                f"{run_id!r} cannot name a run: letters, digits, '_', '.' and '-' only, "
                f"and none of {', '.join(sorted(TAKEN))}"
            )
        return self.runs / f"{run_id}.duckdb"

    def make(self) -> None:
        """Make the folders that are not there yet."""
        self.data.mkdir(parents=True, exist_ok=True)
        self.runs.mkdir(parents=True, exist_ok=True)
