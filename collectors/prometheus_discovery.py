"""What a Prometheus has: metrics, labels, values, one number now; prometheus-api-client, fenced.

Fenced, for as it comes it waits for ever, does not ask again when an answer is cut short, freezes
default times when it is imported, drops warnings, puts secrets of a .netrc before ours, and quotes
what it is given with no care. Nothing that is summed is read here: that is `prometheus`.
"""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import orjson
import requests
from prometheus_api_client.exceptions import PrometheusApiClientException
from prometheus_api_client.prometheus_connect import PrometheusConnect
from urllib3.util.retry import Retry

from collectors.prometheus_answers import Broken, faults_of
from collectors.prometheus_http import (
    CONNECT_SECONDS,
    Connection,
    Fault,
    Patience,
    Transient,
)
from collectors.prometheus_segments import Segment
from collectors.prometheus_selectors import Group
from models.prometheus import PrometheusSource

SPLIT_BY = ("__name__", "instance", "Hostname", "hostname", "node", "UUID", "gpu", "pod", "le")
"""Labels that cut a fleet into many even parts, the best first."""


@dataclass
class Told:
    """What a question about what there is gave."""

    result: Any
    warnings: list[str] = field(default_factory=list)
    """Each is a reason to hold the result for incomplete."""


class Discovery:
    """Asks a server what it has."""

    def __init__(self, source: PrometheusSource, patience: Patience):
        self.connection = Connection(source, patience)
        self.connection.session.hooks["response"].append(self._checked)
        timeout = float(source.timeout_seconds)
        self.timeout = (min(CONNECT_SECONDS, timeout), timeout)
        self.client = PrometheusConnect(
            self.connection.url,
            session=self.connection.session,
            timeout=self.timeout,  # type: ignore[arg-type]
            retry=Retry(0, redirect=False),  # its own knows nothing of answers cut short
        )
        self.warnings: list[str] = []
        """Those of the question that is being asked."""
        self._labels: dict[Group, list[str]] = {}
        self._values: dict[tuple[Group, str], list[str]] = {}
        self._one_at_a_time = threading.Lock()

    def close(self) -> None:
        """Ends its connections."""
        self.connection.close()

    def metrics(self, begin: int, end: int) -> Told:
        """The metrics that have series in the time, in milliseconds since 1970."""
        return self.values("__name__", None, begin, end)

    def values(self, label: str, group: Group | None, begin: int, end: int) -> Told:
        """The values of a label among the series of a group, or among all."""
        params: dict[str, Any] = {"start": begin / 1000, "end": end / 1000}
        if group:
            params["match[]"] = str(group)
        return self._said(self.client.get_label_values, quote(label, safe=""), params)

    def labels(self, group: Group, begin: int, end: int) -> Told:
        """The names of the labels that series of a group have."""
        params = {"start": begin / 1000, "end": end / 1000, "match[]": str(group)}
        return self._said(self.client.get_label_names, params)

    def instant(self, query: str, at: int) -> Told:
        """A query of PromQL as of a moment, for what is looked at and never summed."""
        return self._said(self.client.custom_query, query, {"time": f"{at / 1000:.3f}"})

    def clock(self) -> float:
        """The server's own time, in seconds since 1970."""
        told = self._said(self.client.custom_query, "time()").result
        try:
            return float(told[1])
        except (LookupError, TypeError, ValueError):
            raise Fault("broken_answer", "it does not tell the time") from None

    def status(self, what: str) -> dict[str, Any]:
        """`buildinfo` or `flags`, for the record; empty where a server does not tell."""
        url = f"{self.connection.url}/api/v1/status/{quote(what)}"
        try:
            answer = self._said(
                self.connection.session.get,
                url,
                timeout=self.timeout,
                verify=self.connection.session.verify,
            ).result
        except Fault as fault:
            if isinstance(fault, Transient) or fault.reason in ("forbidden", "secret"):
                raise
            return {}
        data = answer.json().get("data")
        return data if isinstance(data, dict) else {}

    def halves(self, piece: Segment) -> tuple[Group, Group] | None:
        """Two groups that share no series and have all of the piece's; None: one series is left.

        Values are asked for by the metric alone, so that the question stays short, and those that
        the other matchers refuse are left out here.
        """
        base, rest = Group(piece.group.matchers[:1]), piece.group.matchers[1:]
        for label in self._labels_of(base, piece):
            mine = [matcher for matcher in rest if matcher.label == label]
            known = self._values_of(label, base, piece)
            values = [v for v in known if all(matcher.accepts({label: v}) for matcher in mine)]
            if len(values) > 1:
                return piece.group.halves(label, values)
        return None

    def _labels_of(self, base: Group, piece: Segment) -> Iterator[str]:
        """Labels to split by, the best first; all that there are only once those are used up."""
        yield from SPLIT_BY
        if base not in self._labels:
            self._labels[base] = self.labels(base, piece.begin, piece.end).result
        yield from (label for label in self._labels[base] if label not in SPLIT_BY)

    def _values_of(self, label: str, base: Group, piece: Segment) -> list[str]:
        """Asked for once: what comes later falls into the second half, which takes all the rest."""
        if (base, label) not in self._values:
            found = self.values(label, base, piece.begin, piece.end).result
            self._values[base, label] = found
        return self._values[base, label]

    def _said(self, function: Any, *args: Any, **kwargs: Any) -> Told:
        """What the client hands back; its errors as faults that hold no secret."""

        def ask() -> Told:
            self.warnings = []
            with self.connection.faults():
                try:
                    return Told(function(*args, **kwargs), self.warnings)
                except PrometheusApiClientException as error:
                    raise Fault("http", self.connection.scrubbed(str(error))) from None

        with self._one_at_a_time:
            return self.connection.patiently(ask)

    def _checked(self, response: requests.Response, *_: Any, **__: Any) -> None:
        """Sees each answer before the client drops what else it says."""
        if response.status_code != 200:
            raise self.connection.refused(response, response.content)
        try:
            self.warnings += faults_of(orjson.loads(response.content))
        except (orjson.JSONDecodeError, Broken):
            raise Transient("broken_answer", "it is no JSON of this API") from None
