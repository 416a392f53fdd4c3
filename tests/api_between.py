"""What may stand between a recorder and its API server: a cable that is cut, a proxy that spoils.

The cluster behind is real; only the way to it is not. Processes belong to `control_plane`.
"""

import contextlib
import json
import socket
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import requests

from tests.control_plane import ControlPlane

Spoil = Callable[[BaseHTTPRequestHandler], None]
"""Answers in place of the server."""


class Cable:
    """A TCP connection to a port that can be cut, and mended."""

    def __init__(self, port: int):
        self.target = port
        self.is_cut = False
        self._ends: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Breaks what is connected, and refuses what comes."""
        self.is_cut = True
        for end in list(self._ends):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def mend(self) -> None:
        """Lets connections through again."""
        self.is_cut = False

    def close(self) -> None:
        """Takes it away."""
        self.cut()
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                if self.is_cut:
                    near.close()
                    continue
                try:
                    far = socket.create_connection(("127.0.0.1", self.target), 5)
                except OSError:
                    near.close()
                    continue
                far.settimeout(None)
                self._ends |= {near, far}
                for one, other in ((near, far), (far, near)):
                    threading.Thread(target=self._carry, args=(one, other), daemon=True).start()

    def _carry(self, one: socket.socket, other: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := one.recv(1 << 16):
                other.sendall(data)
        for end in (one, other):
            self._ends.discard(end)
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


class Spoiler:
    """An HTTP proxy before the API server, which answers some questions in its own way."""

    def __init__(self, plane: ControlPlane, spoil: Callable[[str, int], Spoil | None]):
        """`spoil` is asked for each question, told its path and query and how many came before."""
        self.asked: list[str] = []
        token = plane.token("admin")

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.0"  # an answer ends with its connection

            def do_GET(handler) -> None:
                self.asked.append(handler.path)
                if answer := spoil(handler.path, len(self.asked) - 1):
                    answer(handler)
                    return
                with requests.Session() as session:
                    session.trust_env = False
                    given = session.get(
                        plane.url + handler.path,
                        headers={"Authorization": f"Bearer {token}"},
                        verify=str(plane.authority),
                        stream=True,
                        timeout=(5, 400),
                    )
                    handler.send_response(given.status_code)
                    handler.end_headers()
                    with contextlib.suppress(OSError, requests.RequestException):
                        for part in given.iter_content(None):
                            handler.wfile.write(part)

            def log_message(handler, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Takes it away."""
        self._server.shutdown()
        self._server.server_close()


def says(code: int, text: str = "", **headers: str) -> Spoil:
    """Answers with a code and a text."""

    def spoil(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(code)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(text.encode())

    return spoil


def rerouted(kubeconfig: Path, url: str) -> Path:
    """The same way to the cluster, through what stands between."""
    told = json.loads(kubeconfig.read_text())
    told["clusters"][0]["cluster"]["server"] = url
    path = kubeconfig.with_name(f"between-{url.rsplit(':', 1)[1]}.kubeconfig")
    path.write_text(json.dumps(told))
    return path
