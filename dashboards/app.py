"""The frame of every page: title, navigation, filters, what the figures rest on, errors, footer.

A new page is a file in views/ and one line here; what a page shows belongs there.
"""

from typing import NoReturn

import streamlit as st

from dashboards.data import LakeError, Reading, Snapshot, exists, home, snapshot
from dashboards.filters import chosen
from dashboards.style import SHEET
from dashboards.trust import strip
from models.figures import instant

PAGES = {
    "Cost": [
        st.Page(
            "views/where.py",
            title="Where did it go?",
            icon=":material/waterfall_chart:",
            url_path="where",
            default=True,
        ),
        st.Page("views/who.py", title="Who spent what?", icon=":material/groups:", url_path="who"),
    ],
    "GPUs": [
        st.Page(
            "views/used.py", title="Allocated or used?", icon=":material/grid_on:", url_path="used"
        ),
        st.Page(
            "views/idle.py",
            title="Which GPUs are idle now?",
            icon=":material/bedtime:",
            url_path="idle",
        ),
        st.Page(
            "views/health.py", title="GPU health", icon=":material/ecg_heart:", url_path="health"
        ),
        st.Page(
            "views/blind.py",
            title="What are we blind to?",
            icon=":material/visibility_off:",
            url_path="blind",
        ),
    ],
    "Jobs": [
        st.Page(
            "views/waits.py",
            title="How long do jobs wait?",
            icon=":material/hourglass_top:",
            url_path="waits",
        ),
        st.Page(
            "views/startup.py",
            title="Where does starting go?",
            icon=":material/rocket_launch:",
            url_path="startup",
        ),
        st.Page(
            "views/wrong.py",
            title="What went wrong?",
            icon=":material/report:",
            url_path="wrong",
        ),
    ],
    "Look up": [
        st.Page("views/find.py", title="Find", icon=":material/search:", url_path="find"),
        st.Page(
            "views/workload.py",
            title="What happened to this workload?",
            icon=":material/timeline:",
            url_path="workload",
        ),
        st.Page(
            "views/node.py",
            title="What happened on this node?",
            icon=":material/dns:",
            url_path="node",
        ),
    ],
}


# Drawn here, because a named icon would be fetched from somebody else's server.
ICON = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect width="16" height="16"
rx="3" fill="#2B5784"/><path d="M3 12V9M6.3 12V4M9.6 12V6.5M13 12v-2" stroke="#fff"
stroke-width="2"/></svg>"""


def stop(heading: str, advice: str, reason: str = "") -> NoReturn:
    """Say why there is nothing to show and what to do about it; the reason is shown as it is."""
    st.subheader(heading)
    if reason:
        st.code(reason, language=None, wrap_lines=True)
    st.markdown(advice)
    st.stop()


def published_snapshot() -> Snapshot:
    """The snapshot to show; draws why not and stops where there is none."""
    if not exists():
        stop(
            "There is no lake here yet",
            "Run `gpuledger demo` to see a made-up fleet, or `gpuledger init` and then "
            "`gpuledger run` for your own. `GPULEDGER_HOME` says where the lake is.",
            f"no lake in {home()}",
        )
    try:
        found = snapshot()
    except LakeError as error:
        stop("The lake cannot be read", "Run `gpuledger status` to see why.", str(error))
    if found is None:
        stop(
            "Nothing has been published yet",
            "Run `gpuledger run`: it publishes a window once its laws hold, and says which "
            "law or source is in the way if they do not.",
        )
    return found


def explain_emptiness(reading: Reading) -> None:
    """Say that the period holds no data, and what to do."""
    st.subheader("No data published for this period")
    st.markdown(
        f"Nothing is published for {reading.period}; the chosen clusters have data from "
        f"{reading.first_on} to {reading.last_on}. Choose other dates above, or compute these days "
        f"with `gpuledger run --from {reading.period.begin_on} --to {reading.period.last_on}`."
    )


def footer(reading: Reading) -> None:
    """Say again, where a page ends, what its figures are of."""
    at = instant(reading.snapshot.committed_at, reading.zone)
    st.caption(
        f"gpuledger · snapshot {reading.snapshot.number}, published {at} · "
        f"days in {reading.zone}, money in {reading.currency} at book price"
    )


def frame(page: st.Page) -> None:
    """Draw the page between the filters and the footer."""
    try:
        reading = chosen(published_snapshot())
        if reading is None:
            stop("Nothing has been published yet", "Run `gpuledger run`.")
        if strip(reading):
            st.session_state["reading"] = reading
            page.run()
        else:
            explain_emptiness(reading)
    except LakeError as error:
        stop("The lake cannot be read", "Reload; `gpuledger status` says more.", str(error))
    footer(reading)


st.set_page_config(page_title="gpuledger", page_icon=ICON, layout="wide")
st.html(SHEET)
frame(st.navigation(PAGES, position="top"))
