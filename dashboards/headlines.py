"""Headlines: one figure each, with how it moved against the period before and what it means.

Which figures a page leads with belongs to its view.
"""

from typing import Literal

import streamlit as st

from dashboards.data import Reading
from models.figures import Number, change, hours, percent, ratio

Good = Literal["up", "down", "neither"]
COLOURS: dict[Good, Literal["normal", "inverse", "off"]] = {
    "up": "normal",
    "down": "inverse",
    "neither": "off",
}


def headline(
    reading: Reading,
    name: str,
    shown: str,
    now: Number | None,
    before: Number | None,
    *,
    good: Good = "neither",
    note: str = "",
    doc: str = "",
    is_share: bool = False,
) -> None:
    """Draw one figure; `note` and `doc` are ours, never a name from a cluster."""
    moved = change(now, before, is_share=is_share) if reading.earlier == "whole" else None
    with st.container(border=True, height="stretch"):
        if moved is None:
            why = {
                "none": "no earlier period",
                "part": "earlier period incomplete",
                "whole": "no earlier figure",
            }[reading.earlier]
            st.metric(name, shown, why, delta_color="off", delta_arrow="off", help=doc or None)
        else:
            st.metric(
                name,
                shown,
                moved,
                delta_color=COLOURS[good],
                delta_description=f"vs. {reading.period.days} d before",
                help=doc or None,
            )
        if note:
            st.caption(note)


def card(name: str, shown: str, *, note: str = "", doc: str = "") -> None:
    """Draw one figure of now, which has no earlier one; `note` and `doc` are ours."""
    with st.container(border=True, height="stretch"):
        st.metric(name, shown, help=doc or None)
        if note:
            st.caption(note)


def not_measured(
    reading: Reading, unobserved: Number, held: Number, before: tuple[Number | None, Number | None]
) -> None:
    """Draw the share of what was held that nothing measures; `before` are the same two figures."""
    share = ratio(unobserved, held)
    headline(
        reading,
        "Not measured",
        percent(share),
        share,
        ratio(*before),
        good="down",
        is_share=True,
        note=hours(unobserved),
        doc="Held, but nothing measures it: neither work nor waste is known of it.",
    )
