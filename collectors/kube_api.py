"""Questions to a Kubernetes API: whole answers and endless ones, each with a time limit.

Whom we are and how we get there is the `kubernetes` package's; its watch is not used, for it hangs
and loses. What is asked belongs to `kube_kinds` and `kube_watch`.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import orjson
import urllib3
from kubernetes import client as kube
from kubernetes import config as kube_config
from urllib3.exceptions import HTTPError

from collectors.faults import Fault, retry_after
from models.kubernetes import Watch

CONNECT_SECONDS = 10.0
ANSWER_SECONDS = 60.0
"""Between two parts of an answer; the API server itself gives up after a minute."""
MOST_LINE_BYTES = 16 << 20
"""No object is larger than etcd's limit; what is longer is no line."""


class Gone(Fault):
    """What was asked for is too old to be had: list again."""


class Refused(Fault):
    """We may not read it, or it is not there."""


class Api:
    """A way to one API server, for many threads."""

    def __init__(self, told: Watch, threads: int = 64):
        """Fault where the configuration of the way there is missing or wrong."""
        self.configuration = kube.Configuration()
        self.configuration.connection_pool_maxsize = threads
        self.configuration.retries = False
        try:
            if told.in_cluster:
                kube_config.load_incluster_config(client_configuration=self.configuration)
            else:
                kube_config.load_kube_config(
                    config_file=str(told.kubeconfig) if told.kubeconfig else None,
                    context=told.context,
                    client_configuration=self.configuration,
                )
        except (kube_config.ConfigException, OSError, ValueError, KeyError, TypeError) as error:
            raise Fault("configuration", _short(str(error))) from None
        self.client = kube.ApiClient(self.configuration)
        self.host = self.configuration.host

    def close(self) -> None:
        """End its connections."""
        self.client.rest_client.pool_manager.clear()

    def ask(self, path: str, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        """A whole answer; Gone, Refused or Fault where there is none."""
        with self._asked(path, query or {}, ANSWER_SECONDS) as response:
            text = response.read()
        try:
            answer = orjson.loads(text)
        except orjson.JSONDecodeError:
            raise Fault("bad_json", _short(text[:200].decode("utf-8", "replace"))) from None
        if not isinstance(answer, dict):
            raise Fault("bad_json", "the answer is no object")
        return answer

    def lines(self, path: str, query: Mapping[str, str], silent_seconds: float) -> Iterator[bytes]:
        """The lines of an endless answer, until it ends; Fault where nothing comes for so long.

        The first one is empty: the server has begun to answer.
        """
        with self._asked(path, query, silent_seconds) as response:
            rest = b""
            yield b""
            # Whatever has come: a read of so many bytes would wait for all of them.
            while part := response.read1(1 << 16, decode_content=True):
                *whole, rest = (rest + part).split(b"\n")
                yield from filter(None, whole)
                if len(rest) > MOST_LINE_BYTES:
                    raise Fault("bad_json", f"a line of more than {MOST_LINE_BYTES >> 20} MiB")
            # What does not end in a line end was cut off: it comes again.

    @contextmanager
    def _asked(
        self, path: str, query: Mapping[str, str], read_seconds: float
    ) -> Iterator[urllib3.BaseHTTPResponse]:
        headers = {"Accept": "application/json", "User-Agent": "gpuledger"}
        response = None
        try:
            self.client.update_params_for_auth(headers, [], ["BearerToken"], path, "GET", None)
            response = self.client.rest_client.pool_manager.request(
                "GET",
                f"{self.host}{path}",
                fields=dict(query),
                headers=headers,
                timeout=urllib3.Timeout(connect=CONNECT_SECONDS, read=read_seconds),
                preload_content=False,
                retries=False,
                redirect=False,
            )
            if response.status != 200:
                raise refused(response.status, response.read(4096), response.headers)
            yield response
        except (HTTPError, OSError) as error:
            raise Fault(*_broken(error)) from None
        finally:
            if response is not None:
                response.close()  # an endless answer is not read to its end


def refused(code: int, text: bytes, headers: Mapping[str, str] | None = None) -> Fault:
    """An answer that is none, or the error in a stream, as the fault that it tells."""
    said = _short(f"{code} {_message(text)}")
    if code == 410:
        return Gone("expired", said)
    if code in (401, 403):
        return Refused("forbidden", said)
    if code in (404, 405):
        return Refused("not_there", said)
    return Fault(f"http_{code}", said, retry_after((headers or {}).get("Retry-After")))


def _message(text: bytes) -> str:
    try:
        return str(orjson.loads(text).get("message", ""))
    except (orjson.JSONDecodeError, AttributeError):
        return text.decode("utf-8", "replace")


def _broken(error: Exception) -> tuple[str, str]:
    """The kind of a broken connection, and what is the same each time."""
    text = str(error)
    found = re.search(r"\[Errno -?\d+\][^'\")]*|certificate[^'\")]*", text)
    said = found.group() if found else type(error).__name__
    if "certificate" in text.lower():
        return "certificate", said
    if "timed out" in text:
        return "stalled", "nothing came in time"
    return "unreachable", said


def _short(text: str) -> str:
    return " ".join(text.split())[:300]
