"""The data dictionary: every table and column as its contract says, in markdown.

`python -m models.dictionary` writes docs/dictionary.md; nothing is worded here that a contract
should say.
"""

from collections.abc import Iterator
from pathlib import Path

from models.catalog import CATALOG, VIEWS
from models.table import Column, Table
from models.units import UNITS, unit_of

PATH = Path(__file__).parents[1] / "docs" / "dictionary.md"
LAYERS = {
    "raw": "What a source said, and what the configuration says.",
    "core": "The facts, at the finest grain that we account for.",
    "mart": "What pages, reports and the API show; each with the scope of its rows.",
    "meta": "What the lake knows of itself.",
}
HEAD = """\
# Data dictionary

Made by `python -m models.dictionary` from the contracts in [models](../models); change them there.
What the words mean is in the [glossary](glossary.md).
"""


def render() -> str:
    """The whole dictionary, as docs/dictionary.md must be."""
    lines = [HEAD, "## Units", "", "| a name ends in | it is in |", "|---|---|"]
    lines += [f"| `{suffix}` | {unit.label} |" for suffix, unit in UNITS.items()]
    for layer, doc in LAYERS.items():
        lines += ["", f"## {layer}", "", doc]
        for table in CATALOG.values():
            if table.layer == layer:
                lines += _table(table)
    lines += ["", "## view", "", "Computed when read, for a period; never stored."]
    for view in VIEWS.values():
        lines += _table(view)
    return "\n".join(lines) + "\n"


def _table(table: Table) -> Iterator[str]:
    yield from ("", f"### {table.name}", "", table.doc, "")
    yield f"One row per {', '.join(f'`{key}`' for key in table.grain)}."
    if table.scope == "platform":
        yield "Only operators see it."
    elif table.scope:
        yield f"A viewer sees the rows of their own teams, by `{table.scope}`."
    yield from ("", "| column | type | unit | what it is |", "|---|---|---|---|")
    for column in table.columns:
        unit = unit_of(column.name)
        label = unit.label if unit else ""
        yield f"| `{column.name}` | {_type(column)} | {label} | {_cell(_words(column))} |"


def _type(column: Column) -> str:
    kind = column.kind.sql.replace("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ")
    return _cell(kind) + (", or null" if column.nullable else "")


def _words(column: Column) -> str:
    bounds = []
    if column.minimum is not None:
        bounds.append(f"at least {column.minimum}")
    if column.maximum is not None:
        bounds.append(f"at most {column.maximum}")
    if column.choices is not None:
        bounds.append("one of " + ", ".join(f"`{choice}`" for choice in column.choices))
    return " ".join([column.doc, *([f"({'; '.join(bounds)})"] if bounds else [])])


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


if __name__ == "__main__":
    PATH.write_text(render(), encoding="utf-8")
