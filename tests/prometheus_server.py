"""A real Prometheus on loopback for tests, what it holds, and a proxy that spoils its answers.

What is asked of it belongs to the tests; no scrape runs, for its blocks are written beforehand.
"""

import http.client
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

from models.prometheus import PrometheusSource

BEGIN = 1_767_225_600_000
"""2026-01-01T00:00:00Z in milliseconds."""


def source(url: str, **other: object) -> PrometheusSource:
    """The configuration of a server."""
    return PrometheusSource.model_validate({"kind": "prometheus", "url": url, **other})


def openmetrics(
    metrics: Iterable[str], gpus: int, begin: int, end: int, step: int, gpus_a_node: int = 8
) -> Iterator[str]:
    """Lines of a fleet's gauges: a sample each step at the GPU's own offset, begin and end too."""
    for metric in metrics:
        yield f"# TYPE {metric} gauge\n"
        for gpu in range(gpus):
            node = gpu // gpus_a_node
            labels = (
                f'UUID="GPU-{gpu:08x}-1111-2222-3333-444444444444",gpu="{gpu % gpus_a_node}",'
                f'Hostname="node-{node}",instance="10.0.{node // 250}.{node % 250}:9400",'
                f'modelName="NVIDIA H100 80GB HBM3",exported_pod="pod-{gpu}",'
                f'exported_namespace="ml \\"x\\" \\\\ ü"'
            )
            offset = gpu * 777 % step if gpu % 3 else 0  # a third lies on the full step
            yield "".join(
                f"{metric}{{{labels}}} {at * 7919 // step % 1009 / 8} {at / 1000:.3f}\n"
                for at in range(begin + offset, end + 1, step)
            )
    yield "# EOF\n"


class Server:
    """One Prometheus with a folder of its own."""

    def __init__(self, binaries: tuple[str, str], folder: Path):
        self.binary, self.promtool = binaries
        self.folder = folder
        self.data = folder / "data"
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.flags: tuple[str, ...] = ()
        self.process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "prometheus.yml").write_text("global: {}\n")

    def load(self, lines: Iterable[str]) -> None:
        """Writes what it holds, before it starts."""
        text = self.folder / "metrics.om"
        with text.open("w") as file:
            file.writelines(lines)
        self.load_file(text)
        text.unlink()

    def load_file(self, text: Path, *flags: str) -> None:
        """Writes what it holds from a file of OpenMetrics, before it starts."""
        command = [self.promtool, "tsdb", "create-blocks-from", "openmetrics", "--quiet", *flags]
        subprocess.run([*command, text, self.data], check=True, capture_output=True)

    def start(self, *flags: str) -> None:
        """Runs it until it is ready."""
        self.flags = flags
        self.process = subprocess.Popen(
            [
                self.binary,
                f"--config.file={self.folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={self.data}",
                *(() if "retention" in str(flags) else ("--storage.tsdb.retention.time=100y",)),
                f"--web.listen-address=127.0.0.1:{self.port}",
                "--log.level=warn",
                *flags,
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        until(self._is_ready)

    def _is_ready(self) -> bool:
        assert self.process is not None and self.process.poll() is None, "it ended at once"
        try:
            with urlopen(f"{self.url}/-/ready", timeout=1) as answer:
                return answer.status == 200
        except HTTPError as error:
            return error.code == 401  # it is there, and asks who we are
        except OSError:
            return False

    def kill(self) -> None:
        """Ends it at once, in the middle of what it does."""
        if self.process:
            self.process.kill()
            self.process.wait()

    def restart(self) -> None:
        """Ends it at once and starts it again."""
        self.kill()
        self.start(*self.flags)


def until(is_true: Callable[[], bool], seconds: float = 60) -> None:
    """Waits until something holds; a test that waits for ever says nothing."""
    limit = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < limit, "it did not come true in time"
        time.sleep(0.05)


def free_port() -> int:
    """A port of loopback on which no one listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


Spoil = Callable[["Handler", bytes], None]
"""Answers a question in its own way, given what the server itself answered."""


class Proxy:
    """Stands before a server; takes its answers, or spoils them as `choose` says for each."""

    def __init__(self, server_port: int, choose: Callable[[str, int], Spoil | None]):
        proxy = self
        self.server_port, self.choose = server_port, choose
        self.asked: list[tuple[str, str]] = []
        """Path and form of each question."""
        self.headers: list[dict[str, str]] = []
        self._lock = threading.Lock()

        class Bound(Handler):
            owner = proxy

        self.httpd = ThreadingHTTPServer(("127.0.0.1", 0), Bound)
        self.httpd.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.httpd.server_address[1]}"
        threading.Thread(target=self.httpd.serve_forever, args=(0.05,), daemon=True).start()

    def fetch(self, handler: "Handler", form: bytes) -> tuple[int, bytes]:
        """What the server itself answers."""
        way = http.client.HTTPConnection("127.0.0.1", self.server_port, timeout=60)
        try:
            kept = {k: v for k, v in handler.headers.items() if k.lower() != "host"}
            way.request(handler.command, handler.path, form, kept)
            answer = way.getresponse()
            handler.encoding = answer.getheader("Content-Encoding")
            return answer.status, answer.read()
        finally:
            way.close()

    def close(self) -> None:
        """Ends it."""
        self.httpd.shutdown()
        self.httpd.server_close()

    def note(self, path: str, form: str, headers: dict[str, str]) -> int:
        """Which question this is, from 0 on."""
        with self._lock:
            self.asked.append((path, form))
            self.headers.append(headers)
            return len(self.asked) - 1


class Handler(BaseHTTPRequestHandler):
    """Hands a question on, and its answer back."""

    protocol_version = "HTTP/1.1"
    owner: Proxy
    encoding: str | None = None

    def do_POST(self) -> None:
        """A question with a form."""
        form = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        number = self.owner.note(self.path, form.decode(), dict(self.headers))
        spoil = self.owner.choose(self.path, number)
        try:
            status, body = self.owner.fetch(self, form)
        except (OSError, http.client.HTTPException):
            self.hang_up()
            return
        if spoil:
            spoil(self, body)
        else:
            self.give(status, body)

    do_GET = do_POST

    def give(self, status: int, body: bytes, **headers: str) -> None:
        """An answer that is whole."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if self.encoding:
            self.send_header("Content-Encoding", self.encoding)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def hang_up(self) -> None:
        """No answer, and the connection is gone."""
        self.close_connection = True
        self.connection.setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0"
        )  # a reset, not an end
        self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing on the console."""


def says(status: int, error: str = "x", kind: str = "internal", **headers: str) -> Spoil:
    """An error as Prometheus words it."""
    body = f'{{"status":"error","errorType":"{kind}","error":"{error}"}}'.encode()
    return lambda handler, _: handler.give(status, body, **headers)


def resets(handler: Handler, body: bytes) -> None:
    """The connection is reset before an answer."""
    handler.hang_up()


def breaks_off(handler: Handler, body: bytes) -> None:
    """The connection ends in the middle of the body."""
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body[: len(body) * 2 // 3])
    handler.hang_up()


def truncates(handler: Handler, body: bytes) -> None:
    """An answer that is cut short, and that no length gives away."""
    handler.give(200, body[: len(body) * 2 // 3])


def stalls(seconds: float) -> Spoil:
    """Half an answer, then nothing for long."""

    def stall(handler: Handler, body: bytes) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body[: len(body) // 2])
        time.sleep(seconds)
        handler.hang_up()

    return stall


def trickles(seconds: float) -> Spoil:
    """An answer that never stops coming, a byte at a time."""

    def trickle(handler: Handler, body: bytes) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        limit = time.monotonic() + seconds
        try:
            while time.monotonic() < limit:
                handler.wfile.write(body[:1])
                time.sleep(0.05)
        except OSError:
            pass
        handler.close_connection = True

    return trickle


def warns(handler: Handler, body: bytes) -> None:
    """The answer, and a warning with it."""
    handler.give(200, body.replace(b'{"status":"success",', WARNED, 1))


WARNED = b'{"status":"success","warnings":["store-2: no such host"],'
