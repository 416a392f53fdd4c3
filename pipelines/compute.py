"""Core and mart of a run's window, each table from its query in sql/.

In which order the tables come belongs in `graph`; what must hold of them in `laws`.
"""

import sql
from lake.run import Run
from models.catalog import CATALOG


def compute_table(run: Run, name: str) -> int:
    """Stage one computed table of the run's window; its rows."""
    return run.fill(CATALOG[name], sql.QUERIES[name], {"zone": run.window.zone})
