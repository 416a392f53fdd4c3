"""What a busy cluster does in a few minutes: pods that run, fail and leave, and queued jobs.

Made from a size, so that the same happens on 20 nodes as on 500. What comes of it is watched by
`cluster_truth`, and compared by the tests.
"""

import random
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

from tests.control_plane_api import Api, Object, Refused, at_once, pod_path, pods
from tests.control_plane_kueue import QUEUE_NAMES, job, job_set, queued, train_job

SPACE = "ml"
STAGE = "stage.kwok.x-k8s.io"
FAILS = {f"pod-container-running-failed.{STAGE}": "true"}


def lasting(least: int, most: int, **labels: str) -> Object:
    """The metadata of pods that kwok completes so many seconds after they are ready."""
    times = {"delay": f"{least}s", "jitter-delay": f"{most}s"}
    told = {f"pod-complete.{STAGE}/{key}": value for key, value in times.items()}
    return {"annotations": told, "labels": labels}


def failing(least: int, most: int) -> Object:
    """The metadata of pods that fail so many seconds after they run."""
    times = {"delay": f"{least}s", "jitter-delay": f"{most}s", "exit-code": "137"}
    told = {f"pod-container-running-failed.{STAGE}/{key}": v for key, v in times.items()}
    return {"annotations": told, "labels": FAILS}


RUNTIMES = {"steady": lasting(20, 60), "broken": failing(8, 20)}


class Traffic:
    """Load for `20 * size` nodes of eight GPUs."""

    def __init__(self, api: Api, size: int, seed: int):
        self.api, self.size, self.random = api, size, random.Random(seed)
        self.node_count, self.gpus_of_queue = 20 * size, 48 * size

    def bare(self) -> None:
        """Pods of nobody, and a Deployment, that go on: the scheduler alone places them."""
        count, lost = 40 * self.size, 4 * self.size
        things = list(pods(count, space=SPACE, prefix="bare", terminationGracePeriodSeconds=3))
        for thing in things[:lost]:
            thing["metadata"] |= failing(5, 40)
        self._make([*things, _deployment(8 * self.size)])

    def leave(self) -> None:
        """Some of them are evicted, some deleted, and nodes are taken away with all on them."""
        names = [f"bare-{number}" for number in range(4 * self.size, 12 * self.size)]
        evicted, deleted = names[::2], names[1::2]
        at_once(lambda name: _quietly(lambda: self.api.evict(name, SPACE)), evicted)
        at_once(lambda name: _quietly(lambda: self.api.delete(pod_path(name, SPACE))), deleted)
        for number in range(self.size):
            self.api.delete(f"/api/v1/nodes/gpu-{number * 20}")

    def wave(self, name: str, priority: str) -> None:
        """As much again of each kind of job, in all queues."""
        self._make(islice(self._jobs(name, priority), 12 * self.size))

    def odd(self) -> None:
        """What fails, and what can never run: evicted for that, queued again, and given up."""
        made: list[Object] = []
        for number in range(self.size):
            meta = queued(f"absent-{number}", SPACE, QUEUE_NAMES[0], "high")
            made.append(job(meta, 2, 1, lasting(5, 5), nodeSelector={"zone": "none"}))
            meta = queued(f"failing-{number}", SPACE, QUEUE_NAMES[1], "high")
            made.append(job(meta, 2, 1, failing(5, 20)))
            meta = queued(f"broken-{number}", SPACE, QUEUE_NAMES[2], "high")
            made.append(train_job(meta, "broken", 2, 1))
        self._make(made)

    def withdraw(self, name: str) -> None:
        """One in six of a wave's JobSets and TrainJobs is deleted, wherever it is by then."""
        group = {"jobset": "jobset.x-k8s.io/v1alpha2", "train": "trainer.kubeflow.org/v1alpha1"}
        plural = {"jobset": "jobsets", "train": "trainjobs"}
        for kind, version in group.items():
            root = f"/apis/{version}/namespaces/{SPACE}/{plural[kind]}"
            for number in range(0, 4 * self.size, 6):
                body = {"propagationPolicy": "Background"}
                self.api.ask("DELETE", f"{root}/{name}-{kind}-{number}", body)

    def evict_members(self) -> None:
        """A pod of every few of the running Jobs is evicted: its Job makes another."""
        found = self.api.items(f"/api/v1/namespaces/{SPACE}/pods")
        running = [
            each["metadata"]["name"]
            for each in found
            if each["status"].get("phase") == "Running"
            and not each["metadata"]["name"].startswith(("bare", "service"))
        ]
        chosen = self.random.sample(running, min(len(running), 6 * self.size))
        at_once(lambda name: _quietly(lambda: self.api.evict(name, SPACE)), chosen)

    def _jobs(self, name: str, priority: str) -> Iterator[Object]:
        number = 0
        while True:
            queues = self.random.sample(QUEUE_NAMES, 3)
            metas = [
                queued(f"{name}-{kind}-{number}", SPACE, queue, priority)
                for kind, queue in zip(("job", "jobset", "train"), queues, strict=True)
            ]
            yield job(metas[0], 4, 1, lasting(20, 60))
            yield job_set(metas[1], 2, 2, 2, lasting(20, 60))
            yield train_job(metas[2], "steady", 4, 2)
            number += 1

    def _make(self, things: Iterable[Object]) -> None:
        with ThreadPoolExecutor(6) as pool:
            for done in [pool.submit(self.api.create, each) for each in things]:
                done.result()


def _deployment(replicas: int) -> Object:
    (pod,) = pods(1)
    labels = {"app": "service"}
    template = {"metadata": {"labels": labels}, "spec": pod["spec"]}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    meta = {"name": "service", "namespace": SPACE}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}


def _quietly(call: Callable[[], object]) -> None:
    """What is asked to go may have gone."""
    try:
        call()
    except Refused as refused:
        if refused.status not in (404, 409, 429):
            raise


def settled(api: Api, seconds: float) -> int:
    """Waits while queued work goes on, at most so long; how much of it is left."""
    limit = time.monotonic() + seconds
    while True:
        left = sum(map(_goes_on, api.items("/apis/kueue.x-k8s.io/v1beta2/workloads")))
        if not left or time.monotonic() > limit:
            return left
        time.sleep(2)


def _goes_on(work: Object) -> bool:
    conditions = work.get("status", {}).get("conditions", ())
    is_over = any(c["type"] == "Finished" and c["status"] == "True" for c in conditions)
    return not is_over and work["spec"].get("active", True)
