"""A Prometheus read in bulk: every stored sample of a segment once, or the word for why not.

prometheus-api-client serves discovery and instant queries, fenced in `prometheus_discovery`. The
bulk path asks for stored samples, a range selector at the end of its window, and never for
query_range, which makes up samples. How a question reaches the server belongs to
`prometheus_http`, what there is to ask to `prometheus_segments`.
"""

import threading
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise

from collectors.prometheus_answers import Answer, Samples, understood
from collectors.prometheus_discovery import Discovery, Told
from collectors.prometheus_http import Connection, Fault, Patience, TooMuch, Transient
from collectors.prometheus_segments import Segment, State, Stretch, worst
from collectors.prometheus_selectors import Group
from models.prometheus import PrometheusSource

SHORTEST = 60_000
"""Milliseconds below which time is not split: then series are."""
MOST_REFUSALS = 64
"""Questions about one group refused as too large in a row: then it is not asked for any more."""
MOST_DOWN = 3
"""Questions in a row to which no one listened: then the rest of the run is missing."""


@dataclass
class Fetched:
    """What was read of a segment, and what is known of it now."""

    segment: Segment
    stretches: list[Stretch]
    """They tile the segment, each in the state that its reading has."""
    data: list[Samples] = field(default_factory=list)
    notices: dict[str, int] = field(default_factory=dict)
    """What was left out or is odd, by reason, and how often."""
    read_count: int = 0
    """Samples that the server sent, those included that were sent twice or before the begin."""
    query_count: int = 0
    """Questions asked, those included that came to nothing."""

    @property
    def state(self) -> State:
        """The state of the whole segment."""
        return worst(stretch.state for stretch in self.stretches)


class Prometheus:
    """Reads segments, some at a time, and learns how much this server gives at once."""

    def __init__(self, source: PrometheusSource, patience: Patience | None = None):
        self.source, self.patience = source, patience or Patience()
        self.discovery = Discovery(source, self.patience)
        self.read_count = self.query_count = 0
        """Samples and questions of all that was handed on."""
        self._local = threading.local()
        self._connections: list[Connection] = []
        self._reach: dict[Group, int] = {}
        self._shards: dict[Group, tuple[Group, Group]] = {}
        self._refused: dict[Group, int] = {}
        self._exhausted = self._down = 0
        # While an answer is made a frame, the server already works on the next.
        self._pool = ThreadPoolExecutor(2 * source.concurrency, thread_name_prefix="prometheus")
        self._turns = threading.Semaphore(source.concurrency)

    def close(self) -> None:
        """Ends its connections."""
        self._pool.shutdown(cancel_futures=True)
        for connection in (*self._connections, self.discovery):
            connection.close()

    def __enter__(self) -> "Prometheus":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def metrics(self, begin: int, end: int) -> Told:
        """The metrics that have series in the time: discovered, never assumed."""
        return self.discovery.metrics(begin, end)

    def collect(self, segments: Iterable[Segment]) -> Iterator[Fetched]:
        """The segments in their order; only a few are in memory at a time."""
        waiting: deque[Future[Fetched]] = deque()
        try:
            for segment in segments:
                waiting.append(self._pool.submit(self._fetched, segment))
                if len(waiting) > 2 * self.source.concurrency:
                    yield self._counted(waiting.popleft().result())
            while waiting:
                yield self._counted(waiting.popleft().result())
        finally:
            for future in waiting:
                future.cancel()

    def _counted(self, fetched: Fetched) -> Fetched:
        self.read_count += fetched.read_count
        self.query_count += fetched.query_count
        return fetched

    def _fetched(self, segment: Segment) -> Fetched:
        fetched = Fetched(segment, [])
        for stretch in self._read(segment, fetched):
            last = fetched.stretches[-1:]
            if last and last[0][3:] == stretch[3:]:  # the same is known of both
                stretch = stretch._replace(begin=last[0].begin)
                fetched.stretches.pop()
            fetched.stretches.append(stretch._replace(group=segment.group))
        return fetched

    def _read(self, segment: Segment, into: Fetched) -> Iterator[Stretch]:
        """Reads a segment in as many parts as the server wants; the stretches tile it."""
        if shards := self._shards.get(segment.group):
            yield self._by_shards(segment, shards, into)
            return
        reach = self._reach.get(segment.group, segment.end - segment.begin)
        for piece in _cut(segment, reach):
            try:
                answer = self._ask(piece, into)
            except TooMuch as fault:
                yield from self._smaller(piece, fault, into)
            except Fault as fault:
                yield Stretch(*piece, State.MISSING, str(fault))
            else:
                yield _taken(piece, answer, into)

    def _smaller(self, piece: Segment, fault: TooMuch, into: Fetched) -> Iterator[Stretch]:
        """The same piece by halves of its time, then by halves of its series."""
        length = piece.end - piece.begin
        if length > SHORTEST:
            self._reach[piece.group] = min(self._reach.get(piece.group, length), -(-length // 2))
            yield from self._read(piece, into)
        else:
            try:
                shards = self.discovery.halves(piece)
            except Fault as other:
                shards, fault = None, TooMuch(fault.reason, f"{fault.text}; {other}")
            if shards is None:
                yield Stretch(*piece, State.MISSING, str(fault))
                return
            self._shards[piece.group] = shards
            yield self._by_shards(piece, shards, into)

    def _by_shards(self, segment: Segment, shards: tuple[Group, Group], into: Fetched) -> Stretch:
        """One stretch for the whole time: what one half lacks, the time lacks."""
        found = [
            stretch
            for shard in shards
            for stretch in self._read(segment._replace(group=shard), into)
        ]
        reasons = dict.fromkeys(stretch.reason for stretch in found if stretch.reason)
        return Stretch(*segment, worst(s.state for s in found), "; ".join(reasons))

    def _ask(self, piece: Segment, into: Fetched) -> Answer:
        """The samples of a piece, each once; the piece may have a part of the group's series."""
        group = into.segment.group
        if self._refused.get(group, 0) >= MOST_REFUSALS:
            raise Fault("too_much", "refused however small: not asked")
        if self._down >= MOST_DOWN:
            raise Fault("unreachable", "no one listened several times in a row: not asked")
        form = {
            "query": f"{piece.group}[{piece.end - piece.begin}ms]",
            "time": f"{piece.end / 1000:.3f}",
            "timeout": f"{max(1, self.source.timeout_seconds * 9 // 10)}s",  # it gives up before us
        }
        connection = self._connection()

        def ask() -> Answer:
            into.query_count += 1
            with self._turns:
                text = connection.ask("/api/v1/query", form)
            return understood(text, piece.begin, piece.end)

        try:
            answer = connection.patiently(ask, 1 if self._exhausted > 1 else None)
        except TooMuch:
            self._refused[group] = self._refused.get(group, 0) + 1
            raise
        except Transient as fault:
            self._exhausted += 1
            self._down = self._down + 1 if fault.reason == "unreachable" else 0
            raise
        self._refused[group] = self._exhausted = self._down = 0
        return answer

    def _connection(self) -> Connection:
        """One for each thread."""
        if not hasattr(self._local, "connection"):
            self._local.connection = Connection(self.source, self.patience)
            self._connections.append(self._local.connection)
        return self._local.connection


def _cut(segment: Segment, reach: int) -> Iterator[Segment]:
    """The segment in equal pieces none of which is longer than the reach."""
    length = segment.end - segment.begin
    pieces = -(-length // max(reach, 1))
    edges = [segment.begin + length * place // pieces for place in range(pieces + 1)]
    for begin, end in pairwise(edges):
        yield Segment(segment.group, begin, end)


def _taken(piece: Segment, answer: Answer, into: Fetched) -> Stretch:
    into.read_count += answer.read_count
    for reason, times in answer.notices.items():
        into.notices[reason] = into.notices.get(reason, 0) + times
    if answer.data.samples.height:
        into.data.append(answer.data)
    state = State.PARTIAL if answer.warnings else State.COMPLETE
    return Stretch(*piece, state, "; ".join(answer.warnings)[:300])
