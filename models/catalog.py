"""All table contracts by name; the contracts themselves live in raw, core, mart and meta."""

from models import core, mart, meta, raw
from models.table import Table

CATALOG: dict[str, Table] = {
    table.name: table for table in (*raw.TABLES, *core.TABLES, *mart.TABLES, *meta.TABLES)
}
"""Every stored table: `layer.name` -> contract."""
