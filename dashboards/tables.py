"""Tables with their download: shown from a contract's columns, and safe to open as a spreadsheet.

Which rows a table holds belongs to its view; units and formats come from `style`.
"""

from collections.abc import Sequence

import polars as pl
import streamlit as st

from dashboards.style import columns, displayed
from models.table import Column

# What makes a spreadsheet take a text for a formula, the full-width signs too.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
NOT_DISPLAYED = "_url"


def safe(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with an apostrophe before every text that a spreadsheet would compute."""
    texts = [name for name, kind in frame.schema.items() if kind == pl.String]
    is_formula = {
        name: pl.any_horizontal([pl.col(name).str.starts_with(s) for s in FORMULA_STARTS])
        for name in texts
    }
    return frame.with_columns(
        pl.when(is_formula[name]).then("'" + pl.col(name)).otherwise(pl.col(name)).alias(name)
        for name in texts
    )


def csv(frame: pl.DataFrame) -> bytes:
    """The rows in the contract's own names and units, unrounded; links are left out."""
    kept = frame.select(name for name in frame.columns if not name.endswith(NOT_DISPLAYED))
    return safe(kept).write_csv(datetime_format="%Y-%m-%dT%H:%M:%SZ").encode()


def show(
    frame: pl.DataFrame,
    specs: Sequence[Column],
    *,
    name: str,
    key: str,
    currency: str = "",
    labels: dict[str, str] | None = None,
    shown: pl.DataFrame | None = None,
    missing: str = "–",
) -> None:
    """A table, and beneath it its CSV; `shown` is what to display where that differs."""
    st.dataframe(
        displayed(frame if shown is None else shown),
        column_config=columns(specs, currency, labels),
        column_order=[spec.name for spec in specs],
        hide_index=True,
        height="content" if frame.height <= 15 else "auto",
        placeholder=missing,
        key=f"table-{key}",
    )
    st.download_button(
        "CSV",
        csv(frame),
        file_name=f"gpuledger-{name}.csv",
        mime="text/csv",
        icon=":material/download:",
        type="tertiary",
        key=f"csv-{key}",
        on_click="ignore",
    )
