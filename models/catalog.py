"""All table contracts by name; the contracts themselves live in raw, core_*, mart and meta."""

from models import core_objects, core_time, mart, meta, raw
from models.table import Table

CATALOG: dict[str, Table] = {
    table.name: table
    for layer in (raw, core_objects, core_time, mart, meta)
    for table in layer.TABLES
}
"""Every stored table: `layer.name` -> contract."""
