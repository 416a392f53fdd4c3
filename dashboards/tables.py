"""Tables with their download: shown from a contract's columns, and safe to open as a spreadsheet.

Which rows a table holds belongs to its view; units and formats come from `style`.
"""

from collections.abc import Mapping, Sequence

import polars as pl
import streamlit as st

from dashboards.style import columns, displayed
from models.cells import FORMULA_STARTS
from models.table import Column
from models.words import NAMES

NOT_DATA = "_url"
MOST_AT_ONCE = 30  # rows that are shown without scrolling inside the table
HEIGHT = 600


def safe(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with an apostrophe before every text that a spreadsheet would compute."""
    texts = [name for name, kind in frame.schema.items() if kind == pl.String]
    is_formula = {
        name: pl.any_horizontal(
            [pl.col(name).str.strip_chars_start(" ").str.starts_with(s) for s in FORMULA_STARTS]
        )
        for name in texts
    }
    # A carriage return alone is written without quotes, and would begin a row.
    whole = {name: pl.col(name).str.replace_all("\r\n?", "\n") for name in texts}
    return frame.with_columns(
        pl.when(is_formula[name]).then("'" + whole[name]).otherwise(whole[name]).alias(name)
        for name in texts
    )


def csv(frame: pl.DataFrame) -> bytes:
    """The rows in the contract's own names and units, unrounded; links are left out."""
    kept = frame.select(name for name in frame.columns if not name.endswith(NOT_DATA))
    return safe(kept).write_csv(datetime_format="%Y-%m-%dT%H:%M:%SZ").encode()


def named(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with words in place of the reserved names of teams, queues and GPU models."""
    found = [n for n in ("team_name", "queue_name", "gpu_model_name") if n in frame.columns]
    return frame.with_columns(pl.col(name).replace(NAMES) for name in found)


def priced_only(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame without the cost of rows of which nothing has a price: unknown is not zero."""
    costs = [name for name in frame.columns if name.endswith("_cost")]
    is_unknown = (pl.col("priced_ratio") == 0).fill_null(value=False)
    return frame.with_columns(pl.when(~is_unknown).then(pl.col(name)).alias(name) for name in costs)


def show(
    frame: pl.DataFrame,
    specs: Sequence[Column],
    *,
    name: str,
    key: str,
    title: str = "",
    caption: str = "",
    currency: str = "",
    labels: Mapping[str, str] | None = None,
    shown: pl.DataFrame | None = None,
    missing: str = "–",
) -> None:
    """A table under its title, beside which is its CSV; `shown` is what to display instead.

    Title and caption are ours, never a name from a cluster: they are rendered.
    """
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        if title:
            st.subheader(title, width="stretch")
        else:
            st.caption(caption, width="stretch")
        st.download_button(
            "CSV",
            csv(frame),
            file_name=f"gpuledger-{name}.csv",
            mime="text/csv",
            icon=":material/download:",
            type="tertiary",
            key=f"csv-{key}",
            help="In exact units: GPU-seconds, and money to the micro-unit.",
            on_click="ignore",
        )
    if title and caption:
        st.caption(caption)
    drawn = named(displayed(frame if shown is None else shown))
    st.dataframe(
        drawn,
        column_config=columns(specs, currency, labels),
        column_order=[spec.name for spec in specs],
        hide_index=True,
        height="content" if frame.height <= MOST_AT_ONCE else HEIGHT,
        placeholder=missing,
        key=f"table-{key}",
    )
