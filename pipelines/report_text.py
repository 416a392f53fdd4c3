"""A report as plain text, for those who read no HTML, for terminals, and to compare two prints.

What it says belongs to `report`; that it says the same as the HTML is tested.
"""

from collections.abc import Iterable, Iterator
from textwrap import fill

from models.figures import instant
from pipelines.report import Cell, Figure, Report, Table

WIDTH = 76


def text(report: Report) -> str:
    """The whole text; the same report gives the same, letter for letter."""
    return "\n".join(_lines(report)).rstrip() + "\n"


def _lines(report: Report) -> Iterator[str]:
    yield from (report.subject, "=" * min(len(report.subject), WIDTH))
    yield f"Snapshot {report.snapshot}, known until {report.known_until}"
    yield ""
    for warning in report.warnings:
        yield _wrapped(f"! {warning}", "  ")
    if report.warnings:
        yield ""
    if report.lead:
        yield from (_wrapped(report.lead), "")
    if report.figures:
        yield from _headed("The week in figures")
        for figure in report.figures:
            yield from _figure(figure)
        if report.incomparable:
            yield _wrapped(report.incomparable)
        yield ""
    for table in report.tables:
        yield from _table(table)
        yield ""
    yield from _headed("How to read this")
    for said in (*report.notes, *source(report)):
        yield _wrapped(f"- {said}", "  ")


def source(report: Report) -> tuple[str, ...]:
    """Where the figures are from, and how to have them again."""
    zone = report.period.zone
    return (
        f"All figures are of snapshot {report.snapshot}, published "
        f"{instant(report.published_at, zone)}; days are those of {zone}, money is at book price.",
        f"The same again: {report.again}",
    )


def _headed(title: str) -> tuple[str, str]:
    return title, "-" * len(title)


def _wrapped(line: str, indent: str = "") -> str:
    # A command is copied whole, so nothing is broken but between words.
    return fill(
        line,
        WIDTH,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _figure(figure: Figure) -> Iterator[str]:
    yield f"{figure.name + ':':<19} {figure.shown}"
    if figure.note:
        yield _wrapped(f"    {figure.note}", "    ")
    if figure.before:
        moved = f", {figure.moved}" if figure.moved else ""
        yield _wrapped(f"    week before: {figure.before}{moved}", "    ")


def _table(table: Table) -> Iterator[str]:
    yield from _headed(table.title)
    if not table.rows:
        yield _wrapped(table.empty)
    for number, row in enumerate(table.rows, 1):
        begin = f"{number:>2}. "
        yield _wrapped(f"{begin}{_cell(row[0])}", "    ")
        yield _wrapped(f"    {_facts(table.heads[1:], row[1:])}", "    ")
    if table.note:
        yield _wrapped(table.note)


def _facts(heads: Iterable[str], cells: Iterable[Cell]) -> str:
    return "; ".join(f"{head}: {_cell(cell)}" for head, cell in zip(heads, cells, strict=True))


def _cell(cell: Cell) -> str:
    return f"{cell.main} ({cell.small})" if cell.small else cell.main
