"""A plain client of an API server for tests: raw JSON, quick, and independent of our recorder.

What a test puts into the cluster is made here; the processes belong to `control_plane`.
"""

import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import orjson
import requests

Object = dict[str, Any]
GPU = "nvidia.com/gpu"


class Refused(Exception):
    """The API server's own no: its status code, its reason and its words."""

    def __init__(self, status: int, reason: str, message: str):
        super().__init__(f"{status} {reason}: {message}")
        self.status, self.reason = status, reason


class Api:
    """One user's way to an API server; threads may share it."""

    def __init__(self, url: str, authority: Path, token: str):
        self.url, self.authority, self.token = url, authority, token
        self._local = threading.local()
        self._plurals: dict[tuple[str, str], tuple[str, bool]] = {}

    @property
    def session(self) -> requests.Session:
        """This thread's connections."""
        found = getattr(self._local, "session", None)
        if found is None:
            found = self._local.session = requests.Session()
            found.trust_env = False  # no proxy stands before loopback
            found.verify = str(self.authority)
            found.headers["Authorization"] = f"Bearer {self.token}"
        return found

    def ask(
        self, method: str, path: str, body: object = None, kind: str = "json", **parameters: str
    ) -> Object:
        """One call; `kind` is the body's, such as `merge-patch+json` for a patch."""
        answer = self.session.request(
            method,
            self.url + path,
            params=parameters,
            data=None if body is None else orjson.dumps(body),
            headers={"Content-Type": f"application/{kind}"},
            timeout=60,
        )
        if answer.ok:
            return orjson.loads(answer.content)
        raise _refusal(answer.status_code, answer.content)

    def get(self, path: str, **parameters: str) -> Object:
        """An object, or a list of them."""
        return self.ask("GET", path, **parameters)

    def items(self, path: str) -> list[Object]:
        """All objects of a list."""
        return self.get(path)["items"]

    def create(self, thing: Object, **parameters: str) -> Object:
        """Any object, at the place that its kind has; what the server would ignore is refused."""
        return self.ask("POST", self.place(thing), thing, fieldValidation="Strict", **parameters)

    def create_all(self, things: Iterable[Object]) -> list[Object]:
        """Many objects as quickly as the server takes them."""
        return at_once(self.create, things, threads=4)

    def place(self, thing: Object) -> str:
        """The path under which objects of this kind are created."""
        version, kind = thing["apiVersion"], thing["kind"]
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        if (version, kind) not in self._plurals:
            for each in self.get(root)["resources"]:
                if "/" not in each["name"]:
                    named = each["name"], each["namespaced"]
                    self._plurals.setdefault((version, each["kind"]), named)
        plural, is_namespaced = self._plurals[version, kind]
        space = thing["metadata"].get("namespace", "default")
        return f"{root}/namespaces/{space}/{plural}" if is_namespaced else f"{root}/{plural}"

    def patch(self, path: str, change: Object) -> Object:
        """A merge patch; the path may end with `/status`."""
        return self.ask("PATCH", path, change, "merge-patch+json")

    def delete(self, path: str, grace: int | None = None) -> Object:
        """Asks for a deletion; with a grace of 0 the object is gone at once."""
        body = {} if grace is None else {"gracePeriodSeconds": grace}
        return self.ask("DELETE", path, body)

    def bind(self, pod: str, node: str, space: str = "default") -> Object:
        """What a scheduler does: puts a pod onto a node."""
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        body = {"metadata": {"name": pod, "namespace": space}, "target": target}
        return self.ask("POST", f"{pod_path(pod, space)}/binding", body)

    def evict(self, pod: str, space: str = "default") -> Object:
        """Asks for a pod to leave, with the disruption told in its status.

        It takes 100 ms, while the server asks etcd whether a budget has changed: see `at_once`.
        """
        meta = {"name": pod, "namespace": space}
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": meta}
        return self.ask("POST", f"{pod_path(pod, space)}/eviction", body)

    def namespace(self, name: str) -> None:
        """A namespace that takes pods at once: they wait for no controller to make the account."""
        self.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        try:
            self.create(service_account("default", name))
        except Refused as refused:
            if refused.reason != "AlreadyExists":
                raise

    def token_of(self, account: str, space: str) -> str:
        """A ServiceAccount's token, as a pod would be given one."""
        body = {"spec": {"expirationSeconds": 86_400}}
        path = f"/api/v1/namespaces/{space}/serviceaccounts/{account}/token"
        return self.ask("POST", path, body)["status"]["token"]

    def may(self, user: str, verb: str, group: str, resource: str) -> bool:
        """Whether a user may do this in all namespaces; `resource` is as roles name it."""
        plural, _, part = resource.partition("/")
        wanted = {"verb": verb, "group": group, "resource": plural, "subresource": part}
        groups = ["system:authenticated"]
        if user.startswith("system:serviceaccount:"):
            space = user.split(":")[2]
            groups += ["system:serviceaccounts", f"system:serviceaccounts:{space}"]
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "metadata": {},
            "spec": {"user": user, "groups": groups, "resourceAttributes": wanted},
        }
        return self.create(review)["status"]["allowed"]

    def watch(self, path: str, version: str, seconds: int = 60) -> Generator[Object, None, None]:
        """The changes after a version, until the server ends the watch."""
        answer = self.session.get(
            self.url + path,
            params={"watch": "1", "resourceVersion": version, "timeoutSeconds": str(seconds)},
            stream=True,
            timeout=seconds + 60,
        )
        with closing(answer):
            if not answer.ok:
                raise _refusal(answer.status_code, answer.content)
            for line in answer.iter_lines(chunk_size=65_536):
                event = orjson.loads(line)
                if event["type"] == "ERROR":
                    raise _refusal(event["object"]["code"], orjson.dumps(event["object"]))
                yield event


def _refusal(status: int, content: bytes) -> Refused:
    try:
        said = orjson.loads(content)
        return Refused(status, said.get("reason", ""), said.get("message", ""))
    except (orjson.JSONDecodeError, AttributeError):
        return Refused(status, "", content[:500].decode(errors="replace"))


def at_once(call: Callable[[Any], Any], each: Iterable[Any], threads: int = 16) -> list[Any]:
    """Many calls by several threads; what they answer is in order, when they came is not."""
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(call, each))


def pod_path(name: str, space: str = "default") -> str:
    """Where a pod is."""
    return f"/api/v1/namespaces/{space}/pods/{name}"


def service_account(name: str, space: str) -> Object:
    """An account for pods."""
    meta = {"name": name, "namespace": space}
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta}


def nodes(
    count: int, gpus: int = 8, product: str = "NVIDIA-H100-80GB-HBM3", prefix: str = "gpu"
) -> Iterator[Object]:
    """Nodes as a kubelet registers them, with the labels that GPU feature discovery gives."""
    amounts = {GPU: str(gpus), "cpu": "128", "memory": "1Ti", "pods": "110"}
    for number in range(count):
        name = f"{prefix}-{number}"
        labels = {
            "kubernetes.io/hostname": name,
            "kubernetes.io/os": "linux",
            "nvidia.com/gpu.count": str(gpus),
            "nvidia.com/gpu.product": product,
            "karpenter.sh/capacity-type": "on-demand",
        }
        yield {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "status": {"capacity": amounts, "allocatable": amounts},
        }


def pods(
    count: int,
    gpus: int = 1,
    space: str = "default",
    prefix: str = "pod",
    meta: Object | None = None,
    **spec: Any,
) -> Iterator[Object]:
    """Pods that ask for GPUs; `meta` and `spec` are what else they say."""
    amounts = {GPU: str(gpus), "cpu": "1", "memory": "1Gi"}
    main = {"name": "main", "image": "train:1", "resources": {"limits": amounts}}
    for number in range(count):
        yield {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"{prefix}-{number}", "namespace": space, **(meta or {})},
            "spec": {"containers": [main], **spec},
        }
