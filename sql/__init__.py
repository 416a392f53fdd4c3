"""The queries: one SELECT per file, its path is the table's name; running them belongs elsewhere.

`sql/core/holds.sql` fills core.holds; `sql/carry/x.sql` makes the CARRIED rows of raw.x for the
next day; `sql/view/x.sql` is computed at read time for a period.
"""

from pathlib import Path

FOLDER = Path(__file__).parent


def _read(layer: str) -> dict[str, str]:
    return {path.stem: path.read_text() for path in sorted((FOLDER / layer).glob("*.sql"))}


QUERIES: dict[str, str] = {
    f"{layer}.{name}": text for layer in ("core", "mart") for name, text in _read(layer).items()
}
"""Table name -> the SELECT that fills it."""

CARRIES: dict[str, str] = {f"raw.{name}": text for name, text in _read("carry").items()}
"""Raw table -> the SELECT of its CARRIED rows for the day after $day_on."""

VIEWS: dict[str, str] = _read("view")
"""Name -> the SELECT that answers for [$begin_on, $end_on), narrowed by $clusters and the like."""
