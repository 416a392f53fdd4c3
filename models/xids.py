"""The XIDs that the NVIDIA driver tells of, and what sort of error each is.

Kinds: fatal (the GPU is of no use until it is reset or replaced), degraded (it works, and should be
looked at), application (the program's doing), cleanup (follows a killed process or another error,
tells nothing of its own), driver, unknown. From NVIDIA's "XID Errors" guide; a code that is not
listed is unknown, never harmless. When a GPU is broken belongs to `sql/core/gpu_faults.sql`.
"""

import csv
from functools import cache
from pathlib import Path
from typing import Any

from models.table import Column, Kind, Table

KINDS = ("fatal", "degraded", "application", "cleanup", "driver", "unknown")

XIDS = Table(
    name="raw.xids",
    doc="What sort of error each XID is.",
    grain=("xid_number",),
    is_daily=False,
    columns=(
        Column("xid_number", Kind.COUNT, "The code.", minimum=1),
        Column("kind_name", Kind.TEXT, "Its sort.", choices=KINDS),
        Column("meaning_text", Kind.TEXT, "What it means."),
    ),
)


@cache
def rows() -> tuple[dict[str, Any], ...]:
    """The rows of raw.xids."""
    with (Path(__file__).parent / "xids.csv").open(encoding="utf-8") as file:
        return tuple(row | {"xid_number": int(row["xid_number"])} for row in csv.DictReader(file))
