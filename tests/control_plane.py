"""A real Kubernetes control plane on loopback: its processes, their flags, their users.

There is no kubelet: kwok plays all of them, so pods run without images, mounts or probes. How the
binaries are built is in `control_plane_build`, what is asked of the server in `control_plane_api`.
"""

import json
import os
import random
import secrets
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from tests.control_plane_api import Api, Refused, service_account
from tests.control_plane_etcd import Etcd
from tests.prometheus_server import until

NAMES = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")
ADMIN = "admin"
USERS = {
    ADMIN: ("system:masters",),
    "kwok": ("system:masters",),
    # Kubernetes itself binds these two to the roles that they need.
    "system:kube-controller-manager": (),
    "system:kube-scheduler": (),
}
STAGES = ("node/fast", "node/heartbeat-with-lease", "pod/general", "pod/chaos")
"""What kwok plays: each step of a pod takes 1 to 5 s, or what the pod's annotations say."""
FAST = ("node/fast", "node/heartbeat-with-lease", "pod/fast")
"""The same, but pods run at once, and never fail."""
GUARD = "read _; kill -KILL 0"
"""Ends its whole process group when its input does: also when the tests themselves are killed."""


class ControlPlane:
    """A cluster's control plane in a folder: data, certificates, logs and kubeconfigs."""

    def __init__(
        self,
        folder: Path,
        binaries: Mapping[str, Path],
        names: Sequence[str] = NAMES,
        users: Mapping[str, Sequence[str]] | None = None,
        flags: Mapping[str, Sequence[str]] | None = None,
        stages: Sequence[str] = STAGES,
    ):
        """`names` are the processes, `users` more users and their groups, `flags` more flags."""
        self.folder, self.binaries, self.names, self.stages = folder, binaries, names, stages
        self.flags = flags or {}
        self.users = {**USERS, **{user: tuple(groups) for user, groups in (users or {}).items()}}
        self.tokens = {user: secrets.token_hex(16) for user in self.users}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        taken = free_ports(6)
        self._port: dict[str, int] = dict(zip((*NAMES, "peer"), taken, strict=True))
        self.url = f"https://127.0.0.1:{self._port['kube-apiserver']}"
        self.authority = folder / "certificates" / "apiserver.crt"
        """The certificate that the API server signs for itself is what its clients trust."""
        self.etcd = Etcd(f"http://127.0.0.1:{self._port['etcd']}")
        self._guard: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        """Starts it; what has started ends if the rest cannot."""
        try:
            self._prepare()
            for name in self.names:
                self.start(name)
            if "kube-apiserver" in self.names:
                until(self._accepts_pods)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends all of it at once."""
        for name in self.processes:
            self.kill(name)
        if self._guard:
            assert self._guard.stdin
            self._guard.stdin.close()
            self._guard.wait()

    def start(self, name: str, *flags: str) -> None:
        """Runs one process until it is ready; one that was killed takes up its ports and data.

        A running API server's memory outlives a compaction of etcd; with `--watch-cache=false` it
        has none, and tells what etcd tells. One that starts again remembers nothing from before.
        """
        words = [str(self.binaries[name]), *self._flags(name), *self.flags.get(name, ()), *flags]
        self.run(name, words)
        until(lambda: self._is_ready(name))

    def run(self, name: str, words: Sequence[str], **environment: str) -> None:
        """Runs a command as one of the processes that end with the cluster; waits for nothing."""
        assert self._guard
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                words,
                cwd=self.folder,
                env=os.environ | environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                process_group=self._guard.pid,
            )

    def kill(self, name: str) -> None:
        """Ends one process at once, in the middle of what it does."""
        self.processes[name].kill()
        self.processes[name].wait()

    def api(self, user: str = ADMIN) -> Api:
        """A user's way to it: one of `users`, or `system:serviceaccount:<namespace>:<name>`."""
        return Api(self.url, self.authority, self.token(user))

    def token(self, user: str) -> str:
        """What proves who a user is; an account's is asked for anew each time."""
        if user in self.tokens:
            return self.tokens[user]
        kind, space, account = user.rsplit(":", 2)
        assert kind == "system:serviceaccount", f"{user} is no user of this cluster"
        return self.api().token_of(account, space)

    def kubeconfig(self, user: str = ADMIN) -> Path:
        """A file with which a client is that user."""
        told = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "clusters": [
                {
                    "name": "test",
                    "cluster": {"server": self.url, "certificate-authority": str(self.authority)},
                }
            ],
            "users": [{"name": user, "user": {"token": self.token(user)}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": user}}],
        }
        path = self.folder / f"{user.replace(':', '_')}.kubeconfig"
        path.write_text(json.dumps(told))  # JSON is YAML
        return path

    def _prepare(self) -> None:
        self.authority.parent.mkdir(parents=True)
        rows = (
            ",".join((self.tokens[user], f'"{user}"', f'"{user}"', f'"{",".join(groups)}"'))
            for user, groups in self.users.items()
        )
        (self.folder / "tokens.csv").write_text("\n".join(rows) + "\n")
        key = ["openssl", "genrsa", "-out", str(self.folder / "accounts.key"), "2048"]
        subprocess.run(key, check=True, capture_output=True)
        self._guard = subprocess.Popen(["sh", "-c", GUARD], stdin=subprocess.PIPE, process_group=0)

    def _flags(self, name: str) -> list[str]:
        """What a process is started with; later flags of a test replace them."""
        port = self._port
        etcd, peer = self.etcd.url, f"http://127.0.0.1:{port['peer']}"
        match name:
            case "etcd":
                return [
                    f"--data-dir={self.folder / 'etcd'}",
                    f"--listen-client-urls={etcd}",
                    f"--advertise-client-urls={etcd}",
                    f"--listen-peer-urls={peer}",
                    f"--initial-advertise-peer-urls={peer}",
                    f"--initial-cluster=default={peer}",
                    # A killed process loses nothing by it, only a machine that loses power.
                    "--unsafe-no-fsync",
                ]
            case "kube-apiserver":
                return [
                    f"--etcd-servers={etcd}",
                    f"--cert-dir={self.authority.parent}",
                    "--bind-address=127.0.0.1",
                    f"--secure-port={port[name]}",
                    "--service-cluster-ip-range=10.96.0.0/16",
                    "--service-account-issuer=https://kubernetes.default.svc",
                    f"--service-account-key-file={self.folder / 'accounts.key'}",
                    f"--service-account-signing-key-file={self.folder / 'accounts.key'}",
                    "--api-audiences=https://kubernetes.default.svc",
                    f"--token-auth-file={self.folder / 'tokens.csv'}",
                    "--authorization-mode=RBAC,Node",
                ]
            case "kube-controller-manager":
                return [
                    *self._as_client(f"system:{name}", port[name]),
                    "--use-service-account-credentials",
                    f"--service-account-private-key-file={self.folder / 'accounts.key'}",
                    f"--root-ca-file={self.authority}",
                    "--controllers=*,-node-ipam-controller,-node-route-controller",
                ]
            case "kube-scheduler":
                return self._as_client(f"system:{name}", port[name])
            case "kwok":
                stages = self.binaries["stages"]
                files = (p for each in self.stages for p in sorted((stages / each).glob("*.yaml")))
                return [
                    f"--kubeconfig={self.kubeconfig(name)}",
                    "--manage-all-nodes=true",
                    "--node-lease-duration-seconds=40",
                    f"--server-address=127.0.0.1:{port[name]}",
                    *(f"--config={p}" for p in files if p.name != "kustomization.yaml"),
                ]
        raise ValueError(name)

    def _as_client(self, user: str, port: int) -> list[str]:
        path = self.kubeconfig(user)
        return [
            *(f"--{use}kubeconfig={path}" for use in ("", "authentication-", "authorization-")),
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            "--leader-elect=false",
            # Else each holds itself back to some tens of calls a second.
            "--kube-api-qps=1000",
            "--kube-api-burst=1000",
        ]

    def _is_ready(self, name: str) -> bool:
        assert self.processes[name].poll() is None, f"{name} ended:\n{self.log(name)[-3000:]}"
        if name == "etcd":
            return self.etcd.is_ready()
        try:
            if name == "kube-apiserver":
                self.api().session.get(f"{self.url}/readyz", timeout=5).raise_for_status()
            else:
                with socket.create_connection(("127.0.0.1", self._port[name]), 1):
                    pass
            return True
        except OSError:
            return False

    def log(self, name: str) -> str:
        """What a process has said so far."""
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def _accepts_pods(self) -> bool:
        """Makes what pods of `default` need, which is else made by a controller, later."""
        try:
            self.api().create(service_account("default", "default"))
        except Refused as refused:
            return refused.reason == "AlreadyExists"  # NotFound: there is no namespace yet
        return True


def free_ports(count: int) -> list[int]:
    """Free ports below those which the system gives to clients.

    Else a client's connection could take the port of a process that is to start again.
    """
    found: list[int] = []
    for port in random.sample(range(20_000, 32_000), 200):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            return found
    raise OSError("no free ports")
