"""Columns that every raw table of observed versions begins with.

The tables themselves are in `raw` and `raw_dra`.
"""

from models.table import CLUSTER, DAY, Column, Kind

CHANGES = ("LISTED", "ADDED", "MODIFIED", "DELETED", "CARRIED", "HEARD")
"""CARRIED: the copy of an object alive at 00:00, so that a day is read without the days before.
HEARD: at the end of a day, what was heard shortly after it of things that happened in it."""

VERSION = (
    CLUSTER,
    DAY,
    Column("sequence_number", Kind.COUNT, "Order of observation within the day.", minimum=0),
    Column("observed_at", Kind.INSTANT, "When the source was read (sub-second kept)."),
    Column("change_name", Kind.TEXT, "What the source said had happened.", choices=CHANGES),
    Column("source_ref", Kind.TEXT, "File and line, or query, to read it again."),
    Column(
        "version_name", Kind.TEXT, "The resourceVersion that its server gave it.", nullable=True
    ),
)
