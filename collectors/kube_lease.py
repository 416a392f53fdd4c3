"""A Lease of Kubernetes: of several recorders of a cluster one records, the others wait.

How it is taken and renewed is the `kubernetes` package's leader election; what its holder does
belongs to `recorder`.
"""

import logging
import os
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

from kubernetes import client as kube
from kubernetes.client.exceptions import ApiException
from kubernetes.leaderelection.electionconfig import Config
from kubernetes.leaderelection.leaderelection import LeaderElection
from kubernetes.leaderelection.resourcelock.leaselock import LeaseLock
from urllib3.exceptions import HTTPError

from collectors.faults import Fault
from collectors.kube_api import CONNECT_SECONDS, Api, refused
from models.kubernetes import Lease

ALIVE_SECONDS = 10.0
Tell = Callable[[str], None]


class _Timely(kube.ApiClient):
    """A client that waits no longer than a share of the Lease, and remembers what was refused."""

    fault: Fault | None = None

    def __init__(self, configuration: kube.Configuration, seconds: float):
        super().__init__(configuration)
        self.seconds = seconds

    def call_api(self, *args: Any, **told: Any) -> Any:
        """An answer, in time."""
        told["_request_timeout"] = (min(CONNECT_SECONDS, self.seconds), self.seconds)
        self.fault = None
        return super().call_api(*args, **told)

    def response_deserialize(self, *args: Any, **told: Any) -> Any:
        """An answer; what it says against us is kept."""
        try:
            return super().response_deserialize(*args, **told)
        except ApiException as error:
            self.fault = refused(error.status or 0, str(error.body or "").encode())
            raise


class HeldLease:
    """The Lease of one recorder, renewed in a thread of its own while it is held."""

    def __init__(self, api: Api, told: Lease, stop: threading.Event, tell: Tell):
        """`stop` ends the wait for it and its renewing, and is set where it is lost."""
        self.name, self.tell, self.stop = f"{told.namespace}/{told.name}", tell, stop
        self.seconds, self.pace = told.seconds, told.seconds / 5
        # The package tells each try; what of it matters is told here.
        logging.getLogger("leaderelection").setLevel(logging.ERROR)
        self.client = _Timely(api.configuration, self.pace)
        self.identity = f"{socket.gethostname()}_{os.urandom(4).hex()}"
        lock = LeaseLock(told.name, told.namespace, self.identity)
        lock.api_instance = kube.CoordinationV1Api(self.client)
        self.election = LeaderElection(
            Config(lock, told.seconds, told.seconds * 2 / 3, self.pace, lambda: None, lambda: None)
        )
        self.fault: Fault | None = None
        """Why it was lost."""
        self.thread = threading.Thread(target=self._renew, name="lease", daemon=True)

    def take(self, alive: Callable[[], None]) -> bool:
        """Wait until it is ours, and say meanwhile that we are alive; False where told to stop."""
        told = ""
        while not self.stop.is_set():
            if self._is_ours():
                self.tell(f"lease {self.name}: held")
                self.thread.start()
                return True
            if told != (told := self._why()):
                self.tell(f"lease {self.name}: {told}; waiting")
            alive()
            self.stop.wait(min(self.pace, ALIVE_SECONDS))
        return False

    def close(self) -> None:
        """End its connections; who waits for it takes it when it has run out."""
        if self.thread.is_alive():
            self.thread.join(self.seconds)
        self.client.rest_client.pool_manager.clear()

    def _renew(self) -> None:
        renewed = time.monotonic()
        while not self.stop.wait(self.pace):
            if self._is_ours():
                renewed = time.monotonic()
            elif self._holder() != self.identity or (
                time.monotonic() - renewed > self.seconds * 2 / 3
            ):
                self.fault = Fault("lease", f"the Lease {self.name} is lost: {self._why()}")
                self.stop.set()

    def _is_ours(self) -> bool:
        try:
            return self.election.try_acquire_or_renew()
        except (HTTPError, OSError) as error:
            self.client.fault = Fault("unreachable", type(error).__name__)
        except Exception as error:  # whatever it is, nobody may record without a Lease
            self.client.fault = Fault("broken", f"{type(error).__name__}: {error}"[:300])
        return False

    def _holder(self) -> str | None:
        record = self.election.observed_record
        return record.holder_identity if record else None

    def _why(self) -> str:
        if self.client.fault:
            return str(self.client.fault)
        return f"{self._holder()} holds it"
