"""The frame of every page: title, navigation, filters, what the figures rest on, errors, footer.

A new page is a file in views/ and one line here; what a page shows belongs there.
"""

import streamlit as st

from dashboards.data import LakeError, Reading, Snapshot, home, snapshot
from dashboards.filters import chosen
from dashboards.figures import instant
from dashboards.style import SHEET
from dashboards.trust import strip

PAGES = [
    st.Page("views/where.py", title="Where did it go?", icon=":material/waterfall_chart:",
            url_path="where", default=True),
    st.Page("views/who.py", title="Who spent what?", icon=":material/groups:", url_path="who"),
    st.Page("views/waits.py", title="How long do jobs wait?", icon=":material/hourglass_top:",
            url_path="waits"),
]  # fmt: skip


def stop(heading: str, advice: str, reason: str = "") -> None:
    """Say why there is nothing to show and what to do about it; the reason is shown as it is."""
    st.subheader(heading)
    if reason:
        st.code(reason, language=None, wrap_lines=True)
    st.markdown(advice)
    st.stop()


def published_snapshot() -> Snapshot:
    """The snapshot to show; draws why not and stops where there is none."""
    if not home().is_dir():
        stop(
            "There is no lake here yet",
            "Run `gpuledger demo` to see a made-up fleet, or `gpuledger init` and then "
            "`gpuledger run` for your own. `GPULEDGER_HOME` says where the lake is.",
            f"no folder {home()}",
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
    assert found is not None
    return found


def explain_emptiness(reading: Reading) -> None:
    """Say that the period holds no data, and what to do."""
    st.subheader("No data published for this period")
    st.markdown(
        f"Nothing is published for {reading.period}; the chosen clusters have data "
        f"from {reading.first_on:%Y-%m-%d}. Choose other dates above, or compute these days with "
        f"`gpuledger run --from {reading.period.begin_on} --to {reading.period.end_on}`."
    )


st.set_page_config(page_title="gpuledger", page_icon=":material/receipt_long:", layout="wide")
st.html(SHEET)
page = st.navigation(PAGES, position="top")
found = published_snapshot()
try:
    reading = chosen(found)
    if reading is None:
        stop("Nothing has been published yet", "Run `gpuledger run`.")
        raise SystemExit  # `stop` does not return
    if strip(reading):
        st.session_state["reading"] = reading
        page.run()
    else:
        explain_emptiness(reading)
except LakeError as error:
    stop("The lake cannot be read", "Reload the page; `gpuledger status` says more.", str(error))
st.caption(
    f"gpuledger · snapshot {found.number}, published {instant(found.committed_at, reading.zone)} · "
    f"days in {reading.zone}, money in {reading.currency} at book price"
)
