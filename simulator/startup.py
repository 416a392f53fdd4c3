"""How a kubelet prepares a pod's containers, and what it tells of it: volumes, images, starts.

It adds nothing to the time that `kubelet` gives a pod until its containers run; it says only what
that time is spent on, with random numbers of its own.
"""

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from simulator.clock import SECOND

if TYPE_CHECKING:
    from simulator.pods import Container, Pod
    from simulator.world import World


@dataclass(eq=False)
class Step:
    """A container's image, as it came to the node; microseconds."""

    container: str
    asked: int
    moved: int | None = None  # it left the node's queue
    pulled: int | None = None
    is_here: bool = False

    @property
    def took(self) -> int:
        """Transfer alone, in milliseconds, as it is told."""
        assert self.pulled is not None
        return (self.pulled - (self.asked if self.moved is None else self.moved)) // 1000

    @property
    def waited(self) -> int:
        """The same with the wait in the queue."""
        assert self.pulled is not None
        return (self.pulled - self.asked) // 1000


def _written(millis: int) -> str:
    """A duration as Go writes it."""
    minutes, rest = divmod(millis, 60_000)
    hours, minutes = divmod(minutes, 60)
    seconds = f"{rest / 1000:.3f}".rstrip("0").rstrip(".")
    if hours:
        return f"{hours}h{minutes}m{seconds}s"
    return f"{minutes}m{seconds}s" if minutes else f"{seconds}s" if rest >= 1000 else f"{rest}ms"


class Startup:
    """What all kubelets of a cluster do before containers run."""

    def __init__(self, world: "World"):
        self.world, self.events = world, world.events
        self.rng = Random(f"{world.seed}/{world.name}/startup")

    def pull(self, pod: "Pod", container: "Container", seconds: float, *, is_here: bool) -> None:
        """The container is to start in so many seconds; its image has to come before."""
        rng = self.rng
        after = self.world.clock.after
        if is_here:
            after(seconds * rng.uniform(0.2, 0.5), self._found, pod, container)
            return
        begin, end = seconds * rng.uniform(0.03, 0.15), seconds * rng.uniform(0.85, 0.97)
        if seconds > 8 and not pod.steps and rng.random() < 0.2:
            begin = seconds * rng.uniform(0.25, 0.5)
            after(begin * 0.3, self._mount_fails, pod)
            after(begin * 0.8, self._mount_fails, pod)
        waits = seconds > 4 and rng.random() < 0.4
        queue = (end - begin) * rng.uniform(0.2, 0.95) if waits else 0.0
        after(begin, self._ask, pod, container, queue, end - begin)

    def _is_off(self, pod: "Pod") -> bool:
        is_over = pod.gone or pod.is_terminal() or pod.asked is not None
        return is_over or not pod.node or bool(pod.node.removed)

    def _mount_fails(self, pod: "Pod") -> None:
        if not self._is_off(pod) and pod.node and pod.node.is_alive:
            text = 'MountVolume.SetUp failed for volume "data" : timed out'
            self.events.of_pod(pod, "FailedMount", text, kind="Warning")

    def _found(self, pod: "Pod", container: "Container") -> None:
        if self._is_off(pod) or any(s.container == container.name for s in pod.steps):
            return
        now = self.world.now
        pod.steps.append(Step(container.name, now, None, now, is_here=True))
        self._present(pod, container)

    def _present(self, pod: "Pod", container: "Container") -> None:
        text = f'Container image "{container.image}" already present on machine'
        self.events.of_pod(pod, "Pulled", text, container=container.name)

    def asks(self, pod: "Pod", container: "Container") -> Step:
        """It asks for an image, for the first time or again."""
        step = Step(container.name, self.world.now)
        pod.steps = [s for s in pod.steps if s.container != container.name or s.pulled is not None]
        pod.steps.append(step)
        text = f'Pulling image "{container.image}"'
        self.events.of_pod(pod, "Pulling", text, container=container.name)
        return step

    def _ask(self, pod: "Pod", container: "Container", queue: float, seconds: float) -> None:
        if self._is_off(pod) or container.started is not None:
            return
        step = self.asks(pod, container)
        if queue:
            step.moved = step.asked + int(queue * SECOND)
        self.world.clock.after(seconds, self._done, pod, container, step)

    def _done(self, pod: "Pod", container: "Container", step: Step) -> None:
        if step.pulled is not None or self._is_off(pod):
            return
        if pod.node and not pod.node.is_alive:
            self.world.clock.after(5, self._done, pod, container, step)
            return
        step.pulled = max(self.world.now, step.moved or 0)
        took, waited = _written(step.took), _written(step.waited)
        text = f'Successfully pulled image "{container.image}" in {took} ({waited} including '
        text += f"waiting). Image size: {len(container.image) * 91_000_017} bytes."
        self.events.of_pod(pod, "Pulled", text, container=container.name)

    def fails(self, pod: "Pod", container: "Container", reason: str) -> None:
        """The image cannot be pulled; or the kubelet waits before it tries again."""
        if reason == "ErrImagePull":
            text = f'Failed to pull image "{container.image}": not found'
            self.events.of_pod(pod, "Failed", text, container=container.name, kind="Warning")
        else:
            text = f'Back-off pulling image "{container.image}"'
            self.events.of_pod(pod, "BackOff", text, container=container.name)

    def starts(self, pod: "Pod", container: "Container", *, is_again: bool = False) -> None:
        """A container is made and runs."""
        if is_again:
            self._present(pod, container)
        mine = [step for step in pod.steps if step.container == container.name]
        for step in mine:
            if step.pulled is None:
                step.moved = None if step.moved is None else min(step.moved, self.world.now)
                self._done(pod, container, step)
        if not mine:
            self._found(pod, container)
        for reason, word in (("Created", "Created"), ("Started", "Started")):
            text = f"{word} container {container.name}"
            self.events.of_pod(pod, reason, text, container=container.name)

    def backs_off(self, pod: "Pod", container: "Container") -> None:
        """It crashed, and waits before it is started again."""
        text = f"Back-off restarting failed container {container.name} in pod {pod.name}"
        self.events.of_pod(pod, "BackOff", text, container=container.name, kind="Warning")

    def probes(self, pod: "Pod", container: "Container") -> None:
        """It is not Ready yet, in other words each time: a recorder joins so many of them."""
        if self._is_off(pod) or pod.ready is not None or not container.is_running():
            return
        took = self.rng.randrange(1000, 9000)
        text = f"Readiness probe failed: no answer in {took} ms"
        self.events.of_pod(pod, "Unhealthy", text, container=container.name, kind="Warning")
        self.world.clock.after(40, self.probes, pod, container)
