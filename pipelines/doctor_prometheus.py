"""What may be wrong with a Prometheus as a source: reaching it, its clock, its memory, its make.

What its metrics lack belongs to `doctor_metrics`. No finding holds a secret: what a server says
comes through `prometheus_http`, which strikes them out.
"""

import re
import time
from collections.abc import Iterator
from typing import Any

from collectors.metrics import place_of
from collectors.prometheus import Prometheus
from collectors.prometheus_discovery import Discovery
from collectors.prometheus_http import Fault, Patience
from collectors.prometheus_recorded import Recorded
from collectors.source import settings as settings_of
from models.config import Config
from models.prometheus import PrometheusSource
from pipelines.cli_common import REFUSED, UNREACHABLE
from pipelines.doctor_metrics import metrics
from pipelines.doctor_view import DAY, MINUTE, View
from pipelines.findings import Finding

QUICK = Patience(attempts=3, first_seconds=0.3)
SKEW_SECONDS = 10
"""Less than the shortest usual scrape interval moves no sample to another one's place."""
LEAST_DAYS = 15
"""What a Prometheus keeps unless told otherwise."""
DAYS = {"ms": 1 / 86_400_000, "s": 1 / 86_400, "m": 1 / 1440, "h": 1 / 24, "d": 1, "w": 7, "y": 365}
OF_TENANTS = re.compile(r"org.?id|tenant", re.IGNORECASE)
CHANGING = ("created-timestamp-zero-ingestion", "promql-extended-range-selectors")
"""Features of a Prometheus under which a range holds other samples than were scraped."""


def prometheus(config: Config, cluster: str, source: PrometheusSource) -> Iterator[Finding]:
    """All that is found of one source."""
    name = f"{cluster}: prometheus {place_of(source)}"
    try:
        if source.url is None:
            yield from _folder(config, cluster, source, name)
        else:
            with Prometheus(source, QUICK) as client:
                yield from _server(config, cluster, client, name)
    except Fault as fault:
        yield Finding(f"{name}: {fault}", _mend(fault, source), UNREACHABLE)
    except FileNotFoundError:
        yield Finding(f"{name} is not there", "correct its path, or mount it", UNREACHABLE)


def _recorders(config: Config, cluster: str) -> list[Any]:
    sources: Any = next((c.sources for c in config.clusters if c.name == cluster), ())
    return [source for source in sources if source.kind == "kubernetes"]


def _view(config: Config, cluster: str, client: Prometheus | Recorded, now: int) -> View:
    has_recorder = bool(_recorders(config, cluster))
    return View(client, settings_of(config, cluster), config, cluster, now, has_recorder)


def _folder(config: Config, cluster: str, source: PrometheusSource, name: str) -> Iterator[Finding]:
    assert source.path is not None
    with Recorded(source.path, source.observed_at, config.lake.accounting_zone) as recorded:
        is_shared = any(r.path == source.path for r in _recorders(config, cluster))
        for reason, times in sorted(recorded.notices.items()):
            if reason == "other_file" and is_shared:
                continue  # the cluster's source of kind kubernetes reads them
            mend = "set observed_at" if reason == "no_time" else "correct the file"
            yield Finding(f"{name}: {times:,} x {reason}: {recorded.examples.get(reason)}", mend)
        if recorded.last is None:
            mend = "put *.om, *.prom, *.txt, *.metrics or answers as *.json into it"
            yield Finding(f"{name} holds no samples", mend, REFUSED)
            return
        view = _view(config, cluster, recorded, recorded.last)
        yield from metrics(view, recorded.metrics(0, 0).result)


def _server(config: Config, cluster: str, client: Prometheus, name: str) -> Iterator[Finding]:
    discovery = client.discovery
    now, skew = _clock(discovery)
    begin = now - config.policies.provisional_days * DAY
    told = discovery.metrics(begin, now + MINUTE)
    yield Finding(f"{name} answers")
    if not told.result:
        mend = "set tenant: to the one that keeps this cluster's metrics, or correct url"
        days = config.policies.provisional_days
        yield Finding(f"{name}: no metrics of the last {days} days", mend, REFUSED)
        return
    if abs(skew) > SKEW_SECONDS:
        yield Finding(
            f"{name}: clock skew: its clock is {abs(skew):,.0f} s "
            f"{'ahead of' if skew > 0 else 'behind'} ours: the newest hour is read too "
            f"{'late' if skew > 0 else 'early, and what comes after is missed'}",
            "let both machines keep time by NTP: see `timedatectl` on each",
        )
    yield from _make(discovery, config, name)
    view = _view(config, cluster, client, now)
    view.warnings += told.warnings
    yield from metrics(view, told.result)
    for warning in dict.fromkeys(view.warnings):
        yield Finding(
            f"{name}: answers come with a warning: {warning}: such windows count as partial",
            "see to what it names, a store or a rule of the server, and run again",
        )


def _clock(discovery: Discovery) -> tuple[int, float]:
    """The server's time in milliseconds, and how many seconds it is ahead of ours."""
    before = time.time()
    theirs = discovery.clock()
    ours = (before + time.time()) / 2
    return round(theirs * 1000), theirs - ours


def _make(discovery: Discovery, config: Config, name: str) -> Iterator[Finding]:
    """What the server is, and how long it keeps what it has."""
    build, flags = discovery.status("buildinfo"), discovery.status("flags")
    version = build.get("version") or "of unknown version"
    if "storage.tsdb.path" not in flags:
        yield Finding(
            f"{name}: {_other(build, flags)} {version}: it speaks Prometheus's API and was not run "
            "with gpuledger: whether it thins or merges samples is unknown",
            "compare a day's samples with count_over_time, or name a Prometheus itself as url",
        )
        return
    yield Finding(f"{name}: Prometheus {version}, {flags.get('query.max-samples', '?')} samples "
                  f"and {flags.get('query.timeout', '?')} a query")  # fmt: skip
    for feature in CHANGING:
        if feature in flags.get("enable-feature", ""):
            yield Finding(
                f"{name}: its feature {feature} changes which samples a range holds",
                f"remove {feature} from --enable-feature",
            )
    yield from _retention(flags, config, name)


def _other(build: dict[str, Any], flags: dict[str, Any]) -> str:
    if build.get("application"):
        return str(build["application"])
    if any(flag.startswith(("store.", "endpoint", "query.replica-label")) for flag in flags):
        return "Thanos"
    return "a server that does not say what it is (VictoriaMetrics, or another)"


def _retention(flags: dict[str, Any], config: Config, name: str) -> Iterator[Finding]:
    days = kept_days(flags)
    raw = config.policies.raw_retention_days
    if days is None:
        return
    if days < LEAST_DAYS:
        yield Finding(
            f"{name}: retention: it keeps {days:g} days: a first run shows no more, and what is "
            "not read by then is lost",
            f"--storage.tsdb.retention.time={LEAST_DAYS}d, or more",
        )
    elif days < raw:
        yield Finding(
            f"{name}: retention: it keeps {days:g} days, less than policies.raw_retention_days "
            f"{raw}: a first run shows no more",
            f"--storage.tsdb.retention.time={raw}d, or leave it: what was read is kept here",
        )


def kept_days(flags: dict[str, Any]) -> float | None:
    """The days that a Prometheus keeps by its flags; None where a size limits it alone."""
    told = [flags.get(f"storage.tsdb.retention{end}", "") for end in (".time", "")]
    for text in told:
        parts = re.findall(r"(\d+)(ms|[smhdwy])", text)
        if days := sum(int(number) * DAYS[unit] for number, unit in parts):
            return days
    is_by_size = flags.get("storage.tsdb.retention.size", "0B") not in ("", "0", "0B")
    return None if is_by_size else LEAST_DAYS


def _mend(fault: Fault, source: PrometheusSource) -> str:
    """The line to change; it may name keys of the configuration, and never what they hold."""
    if OF_TENANTS.search(fault.text):
        other = "another tenant" if source.tenant else "the tenant to ask"
        return f"tenant: name {other} (it is sent as X-Scope-OrgID)"
    match fault.reason:
        case "unreachable" | "stalled" | "connection_broken":
            return "url: correct it, or see that the server runs and this machine may reach it"
        case "forbidden":
            way = "bearer" if source.auth.bearer else "basic" if source.auth.basic else ""
            return (
                f"auth.{way}: it is refused: renew what its file or variable holds"
                if way
                else "auth: give bearer or basic, for it asks who we are"
            )
        case "certificate":
            return "auth.tls: authority must be the file of who signed its certificate"
        case "secret":
            return "auth, secret_headers: let the file or the variable be there and readable"
        case "redirected":
            return "url: give the address that it names"
        case "http_404" | "http_405":
            return "url: give the path before /api/v1, too, such as /prometheus for Mimir"
    return "see the server's own log, then correct url or auth"
