"""Several answers for one stretch of a family as one, and one of several states as several.

What is known of them afterwards belongs to `metrics_known`.
"""

from collections.abc import Iterator
from itertools import pairwise

import polars as pl

from collectors.prometheus import Fetched
from collectors.prometheus_answers import Samples
from collectors.prometheus_segments import Segment, State, Stretch, worst
from models.table import INSTANT

MOST_SIGNS = 300
"""Of a reason."""


def joined(segment: Segment, parts: list[Fetched], reason: str = "") -> Fetched:
    """The answers to all questions about a segment; a reason makes it partial at best."""
    whole = Fetched(segment, [])
    for part in parts:
        whole.data += part.data
        whole.read_count += part.read_count
        whole.query_count += part.query_count
        for notice, times in part.notices.items():
            whole.notices[notice] = whole.notices.get(notice, 0) + times
    cuts = sorted({t for part in parts for s in part.stretches for t in (s.begin, s.end)})
    for begin, end in pairwise(cuts):
        here = [s for p in parts for s in p.stretches if s.begin <= begin and end <= s.end]
        state = worst(stretch.state for stretch in here)
        if reason and state is State.COMPLETE:
            state = State.PARTIAL
        reasons = [reason, *(stretch.reason for stretch in here)]
        text = "; ".join(dict.fromkeys(filter(None, reasons)))[:MOST_SIGNS]
        last = whole.stretches[-1:]
        if last and last[0][3:5] == (state, text):
            whole.stretches[-1] = last[0]._replace(end=end)
        else:
            whole.stretches.append(Stretch(segment.group, begin, end, state, text))
    return whole


def parted(whole: Fetched) -> Iterator[Fetched]:
    """One for each stretch, with its samples; what was left out goes with the first."""
    if len(whole.stretches) == 1:
        yield whole
        return
    spare = whole.read_count - sum(data.samples.height for data in whole.data)
    for number, stretch in enumerate(whole.stretches):
        begin, end = (pl.lit(t * 1000).cast(INSTANT) for t in (stretch.begin, stretch.end))
        data = [
            Samples(one.series, one.samples.filter((pl.col("at") > begin) & (pl.col("at") <= end)))
            for one in whole.data
        ]
        data = [one for one in data if one.samples.height]
        part = Fetched(Segment(*stretch[:3]), [stretch], data)
        part.read_count = sum(one.samples.height for one in data)
        if not number:
            part.read_count += spare
            part.notices, part.query_count = whole.notices, whole.query_count
        yield part
