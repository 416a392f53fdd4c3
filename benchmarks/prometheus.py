"""How fast a day comes out of a real Prometheus, beside its bare download and the library's frames.

One day of 500 GPUs x 10 metrics at a minute (or what the options say), made on the spot and kept in
a folder that is told, for making it takes longer than reading it. Each way runs in a process of
its own, in turns; printed are the seconds of each turn, what its own processor time is, the median
of each turn's ratio, and peak memory. The bare download is measured one answer at a time, as a
shell would, and with as many questions at once as we ask.

    python -m benchmarks.prometheus [--gpus 500] [--metrics 10] [--days 1] [--turns 3] [--data DIR]
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from shutil import which

import requests

from collectors.prometheus import Prometheus
from collectors.prometheus_segments import DAY, HOUR, Segment, hours
from collectors.prometheus_selectors import Group
from tests.prometheus_server import BEGIN, Server, openmetrics, source

MINUTE = 60_000
CONCURRENCY = 2


def segments(metrics: int, days: float) -> list[Segment]:
    """The hours of the days, each of all metrics."""
    end = BEGIN + int(days * 24) * HOUR
    names = [f"DCGM_FI_METRIC_{number}" for number in range(metrics)]
    return [Segment(Group.of(name), *hour) for hour in hours(BEGIN, end) for name in names]


def ours(url: str, asked: list[Segment]) -> int:
    """Frames by our client; each is dropped as it comes, as the one who stores it would."""
    with Prometheus(source(url, concurrency=CONCURRENCY)) as client:
        return sum(data.samples.height for one in client.collect(asked) for data in one.data)


def download(url: str, asked: list[Segment], at_once: int = CONCURRENCY) -> int:
    """The bytes of the same answers, to nowhere."""

    def one(segment: Segment) -> int:
        form = {
            "query": f"{segment.group}[{segment.end - segment.begin}ms]",
            "time": f"{segment.end / 1000:.3f}",
        }
        asking = session.post(f"{url}/api/v1/query", data=form, stream=True)
        with asking as answer, Path("/dev/null").open("wb") as nowhere:
            return sum(nowhere.write(part) for part in answer.iter_content(1 << 18))

    with requests.Session() as session, ThreadPoolExecutor(at_once) as pool:
        session.headers["Accept-Encoding"] = "identity"
        return sum(pool.map(one, asked))


def one_by_one(url: str, asked: list[Segment]) -> int:
    """The same, a question at a time."""
    return download(url, asked, 1)


def library(url: str, asked: list[Segment]) -> int:
    """The frames of prometheus-api-client: a metric of a day at a time, in chunks of an hour."""
    from datetime import timedelta

    from prometheus_api_client.metric_range_df import MetricRangeDataFrame
    from prometheus_api_client.prometheus_connect import PrometheusConnect

    begin, end = (datetime.fromtimestamp(at / 1000, UTC) for at in (BEGIN, asked[-1].end))
    found = 0
    for name in dict.fromkeys(segment.group.matchers[0].value for segment in asked):
        data = PrometheusConnect(url).get_metric_range_data(
            name, start_time=begin, end_time=end, chunk_size=timedelta(hours=1)
        )
        found += MetricRangeDataFrame(data).shape[0]
    return found


WAYS: dict[str, Callable[[str, list[Segment]], int]] = {
    "one_by_one": one_by_one,
    "download": download,
    "ours": ours,
    "library": library,
}


def measured(way: str, url: str, metrics: int, days: float) -> dict[str, float]:
    """Seconds, peak megabytes and what was counted, of a way in a fresh process."""
    command = [sys.executable, "-m", "benchmarks.prometheus", "--way", way, "--url", url]
    command += ["--metrics", str(metrics), "--days", str(days)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def alone(way: str, url: str, metrics: int, days: float) -> None:
    """One way, measured from inside; what it needs is loaded before the clock starts."""
    asked = segments(metrics, days)
    WAYS[way](url, asked[:1])
    start, own = time.perf_counter(), time.process_time()
    count = WAYS[way](url, asked)
    seconds, own = time.perf_counter() - start, time.process_time() - own
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "own": own, "peak_mb": peak, "count": count}))


def served(folder: Path, gpus: int, metrics: int, days: float) -> Server:
    """A server that holds the data, which are made where they are not there yet."""
    binaries = which("prometheus"), which("promtool")
    if None in binaries:
        sys.exit("install Debian's package prometheus")
    name = f"{gpus}x{metrics}x{days:g}"
    server = Server((str(binaries[0]), str(binaries[1])), folder / name)
    done = folder / name / "done"
    edges = range(BEGIN, BEGIN + int(days * 24) * HOUR, DAY)  # promtool reads a file for each block
    for number in () if done.exists() else range(metrics):
        for begin in edges:
            until = min(begin + DAY, BEGIN + int(days * 24) * HOUR)
            name = f"DCGM_FI_METRIC_{number}"
            server.load(openmetrics([name], gpus, begin + MINUTE, until, MINUTE))
        print(f"made metric {number + 1} of {metrics}", file=sys.stderr)
    done.touch()
    server.start()
    return server


def compare(server: Server, metrics: int, days: float, turns: int) -> None:
    """The ways in turns: what else the machine does then troubles all alike."""
    found: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    for _ in range(turns):
        for way in WAYS:
            found[way].append(measured(way, server.url, metrics, days))
    for way, of_way in found.items():
        seconds = " ".join(f"{one['seconds']:.2f}" for one in of_way)
        own = statistics.median(one["own"] for one in of_way)
        peak = max(one["peak_mb"] for one in of_way)
        print(f"{way:10} {seconds} s, own {own:.2f} s, peak {peak:.0f} MB", end=", ")
        print(f"counted {of_way[0]['count']:.0f}")
    for beside in (way for way in WAYS if way != "ours"):
        pairs = zip(found["ours"], found[beside], strict=True)
        ratio = statistics.median(one["seconds"] / other["seconds"] for one, other in pairs)
        print(f"ours / {beside} {ratio:.2f}")


def main() -> None:
    """Reads the options and measures."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--gpus", type=int, default=500)
    options.add_argument("--metrics", type=int, default=10)
    options.add_argument("--days", type=float, default=1)
    options.add_argument("--turns", type=int, default=3)
    options.add_argument("--data", type=Path)
    options.add_argument("--flat", action="store_true", help="also peak memory over 10 x the days")
    options.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    options.add_argument("--url", help=argparse.SUPPRESS)
    told = options.parse_args()
    if told.way:
        alone(told.way, told.url, told.metrics, told.days)
        return
    with tempfile.TemporaryDirectory() as folder:
        days = told.days * (10 if told.flat else 1)
        server = served(told.data or Path(folder), told.gpus, told.metrics, days)
        try:
            compare(server, told.metrics, told.days, told.turns)
            if told.flat:
                for length in (told.days, days):
                    one = measured("ours", server.url, told.metrics, length)
                    print(
                        f"{length:g} days: {one['count']:.0f} samples in {one['seconds']:.1f} s, "
                        f"peak {one['peak_mb']:.0f} MB"
                    )
        finally:
            server.kill()


if __name__ == "__main__":
    main()
