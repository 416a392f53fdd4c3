"""A report as HTML that mail clients show: tables and inline styles, nothing from elsewhere.

What it says belongs to `report`. Each text is escaped on its way in, whoever wrote it.
"""

from collections.abc import Iterator, Sequence
from html import escape

from pipelines.report import Cell, Figure, Report, Table
from pipelines.report_text import source

INK, MUTED, LINE, PAPER, GROUND = "#1F2933", "#52606D", "#E4E7EB", "#FFFFFF", "#F5F7FA"
ACCENT, AMBER, WARN = "#2B5784", "#FFF8E6", "#7A4B00"
FONT = "-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif"
NUMBER = "font-variant-numeric:tabular-nums"
HEADLINES_A_ROW = 2
LONGEST_WHOLE = 18
"""Letters of a figure that is never broken, such as an instant."""
ANYWHERE, WHOLE, AT_BLANKS = (
    "white-space:normal;overflow-wrap:anywhere;word-break:break-word",
    "white-space:nowrap",
    "white-space:normal",
)


def html(report: Report) -> str:
    """The whole document; the same report gives the same, letter for letter."""
    body = "\n".join(_body(report))
    # Colours are all told, ground and letters, so that a client in the dark keeps them readable.
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light">
<meta name="supported-color-schemes" content="light">
<meta name="format-detection" content="telephone=no, date=no, address=no, email=no">
<title>{escape(report.subject)}</title>
</head>
<body style="margin:0;padding:0;background-color:{GROUND};color:{INK}">
<table role="presentation" width="100%" cellpadding="0" cellspacing="0" border="0" \
style="background-color:{GROUND}"><tr><td align="center" style="padding:16px 8px">
<table role="presentation" width="100%" cellpadding="0" cellspacing="0" border="0" \
style="max-width:680px;background-color:{PAPER};border:1px solid {LINE};border-radius:6px">
<tr><td style="padding:24px;font:14px/1.5 {FONT};color:{INK};text-align:left">
{body}
</td></tr></table>
</td></tr></table>
</body>
</html>
"""


def _body(report: Report) -> Iterator[str]:
    yield (
        f'<h1 style="margin:0 0 4px;font-size:21px;line-height:1.3;color:{INK}">'
        f"{escape(report.subject)}</h1>"
    )
    yield _muted(f"Snapshot {report.snapshot}, known until {report.known_until}", "0 0 16px")
    if report.warnings:
        lines = "".join(
            f'<p style="margin:0 0 6px;color:{WARN}">{escape(warning)}</p>'
            for warning in report.warnings
        )
        yield (
            f'<div style="margin:0 0 16px;padding:12px 14px 6px;background-color:{AMBER};'
            f'border-left:4px solid #F2B84B">{lines}</div>'
        )
    if report.lead:
        yield f'<p style="margin:0 0 16px">{escape(report.lead)}</p>'
    if report.figures:
        yield _headlines([figure for figure in report.figures if figure.is_headline])
        yield _heading("The week in figures")
        yield _figures(report.figures, is_compared=not report.incomparable)
        if report.incomparable:
            yield _muted(report.incomparable, "6px 0 0")
    for table in report.tables:
        yield _heading(table.title)
        yield _table(table)
    yield _heading("How to read this")
    for said in (*report.notes, *source(report)):
        yield _muted(said, "0 0 6px")


def _heading(title: str) -> str:
    return (
        f'<h2 style="margin:28px 0 8px;font-size:16px;line-height:1.3;color:{INK}">'
        f"{escape(title)}</h2>"
    )


def _muted(text: str, margin: str = "2px 0 0", wrap: str = ANYWHERE) -> str:
    return (
        f'<p style="margin:{margin};font-size:12px;line-height:1.45;color:{MUTED};{wrap}">'
        f"{escape(text)}</p>"
    )


def _headlines(figures: list[Figure]) -> str:
    """The figures that a reader in a hurry takes away, two in a row."""
    rows = []
    for place in range(0, len(figures), HEADLINES_A_ROW):
        cells = "".join(
            f'<td width="50%" valign="top" style="padding:12px 14px;border:1px solid {LINE};'
            f'background-color:{PAPER}">'
            f'<p style="margin:0;font-size:12px;color:{MUTED}">{escape(figure.name)}</p>'
            f'<p style="margin:0;font-size:24px;line-height:1.3;color:{ACCENT};{NUMBER}">'
            f"{escape(figure.shown)}</p>{_muted(figure.note) if figure.note else ''}</td>"
            for figure in figures[place : place + HEADLINES_A_ROW]
        )
        rows.append(f"<tr>{cells}</tr>")
    return (
        '<table role="presentation" width="100%" cellpadding="0" cellspacing="0" border="0" '
        f'style="border-collapse:collapse">{"".join(rows)}</table>'
    )


def _figures(figures: tuple[Figure, ...], *, is_compared: bool) -> str:
    rows = [
        (
            Cell(figure.name),
            Cell(figure.shown, figure.note),
            Cell(figure.before),
            _moved(figure),
        )
        for figure in figures
    ]
    heads = ("", "This week", "Week before", "Difference")
    if is_compared:
        return _grid(heads, rows, names=False)
    return _grid(heads[:2], [row[:2] for row in rows], names=False)


def _moved(figure: Figure) -> Cell:
    """The difference, and its share of the figure before on a line of its own."""
    main, bracket, share = figure.moved.partition(" (")
    return Cell(main, share.removesuffix(")") if bracket else "")


def _table(table: Table) -> str:
    said = _muted(table.note, "6px 0 0") if table.note else ""
    if not table.rows:
        return f'<p style="margin:0">{escape(table.empty)}</p>{said}'
    return _grid(table.heads, table.rows) + said


def _grid(heads: tuple[str, ...], rows: Sequence[tuple[Cell, ...]], *, names: bool = True) -> str:
    """A table of cells, the last column to the right; `names`: the first has names of clusters."""
    last = len(heads) - 1
    head = "".join(
        f'<th align="{_side(place, last)}" style="padding:6px {_gap(place, last)} 6px 0;'
        f"font-size:12px;font-weight:600;color:{MUTED};text-align:{_side(place, last)};"
        f'border-bottom:2px solid {LINE}">{escape(name)}</th>'
        for place, name in enumerate(heads)
    )
    body = "".join(
        "<tr>"
        + "".join(
            _cell(cell, _side(place, last), is_name=names and place == 0)
            for place, cell in enumerate(row)
        )
        + "</tr>"
        for row in rows
    )
    return (
        '<table width="100%" cellpadding="0" cellspacing="0" border="0" '
        f'style="border-collapse:collapse;font-size:13px;line-height:1.4;color:{INK}">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def _side(place: int, last: int) -> str:
    return "right" if place == last > 1 else "left"


def _gap(place: int, last: int) -> str:
    return "0" if place == last else "10px"


def _cell(cell: Cell, side: str, *, is_name: bool) -> str:
    """A place of a table; a name breaks anywhere, a short figure nowhere."""
    small = _muted(cell.small, wrap=_wrap(cell.small, is_name)) if cell.small else ""
    return (
        f'<td valign="top" style="padding:7px {"0" if side == "right" else "10px"} 7px 0;'
        f"border-bottom:1px solid {LINE};text-align:{side};"
        f'{"min-width:90px" if is_name else NUMBER};{_wrap(cell.main, is_name)}">'
        f"{escape(cell.main)}{small}</td>"
    )


def _wrap(text: str, is_name: bool) -> str:
    if is_name:
        return ANYWHERE
    return WHOLE if len(text) <= LONGEST_WHOLE else AT_BLANKS
