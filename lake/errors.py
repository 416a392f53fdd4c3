"""What the lake raises when it refuses; an error of a query itself stays DuckDB's own."""


class LakeError(Exception):
    """The lake refuses, and says why in one sentence that a user can act on."""


class StrayRowsError(LakeError):
    """Rows that belong to another cluster or day than the run that brings them."""

    def __init__(self, table: str, count: int, window: str):
        super().__init__(f"{table}: {count} rows outside {window}")
        self.table = table
        self.count = count


class ScopeError(LakeError):
    """A statement that asks for what its reader may not see, or that is no plain SELECT."""
