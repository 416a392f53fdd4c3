"""What kubelets and the garbage collector do to a pod that has a node: run, restart, end, remove.

Which node a pod gets belongs to `schedulers`, when its deletion is asked to `controllers`.
"""

from collections.abc import Callable
from typing import Any

from simulator.pods import Container, Pod
from simulator.startup import Startup
from simulator.world import World

Step = Callable[..., None]
BACK_OFF = (10, 20, 40, 80, 160, 300)


class Kubelet:
    """All kubelets of a cluster: each answers only while its node is alive."""

    def __init__(self, world: World):
        self.world = world
        self.rng = world.rng
        self.startup = Startup(world)

    def _later(self, seconds: float, call: Step, pod: Pod, *args: Any) -> None:
        """Ask for a step of a pod's life; it is dropped if the pod has left that life."""
        self.world.clock.after(seconds, self._step, call, pod, args)

    def _step(self, call: Step, pod: Pod, args: tuple[Any, ...]) -> None:
        if pod.gone or pod.is_terminal() or pod.asked is not None:
            return
        if not pod.node or pod.node.removed:
            return
        if not pod.node.is_alive:
            self.world.clock.after(30, self._step, call, pod, args)
            return
        call(pod, *args)

    def accept(self, pod: Pod) -> None:
        """A pod was bound: refuse it, or prepare it."""
        self._later(self.rng.uniform(0.3, 1.1), self._admit, pod)

    def _admit(self, pod: Pod) -> None:
        world = self.world
        if pod.plan.is_refused:
            pod.phase, pod.reason = "Failed", "UnexpectedAdmissionError"
            self.release(pod)
            world.tell_pod(pod)
            self.over(pod)
            return
        pod.acknowledged, pod.devices_from = world.second, world.now
        plan, node = pod.plan, pod.node
        assert node
        image = pod.containers[-1].image
        is_here = image in node.images
        pull = self.rng.uniform(0.4, 1.5) if is_here else plan.pull * self.rng.uniform(0.6, 1.6)
        if plan.pull_error is not None:
            world.tell_pod(pod)
            self.startup.asks(pod, pod.asking()[0])
            self._later(2, self._pull_fails, pod, "ErrImagePull")
            self._later(14, self._pull_fails, pod, "ImagePullBackOff")
            self._later(plan.pull_error, self._pull_works, pod)
            return
        if plan.init or pull > 5:
            world.tell_pod(pod)
        node.images.add(image)
        self._init(pod, 0, pull, is_here=is_here)

    def _pull_fails(self, pod: Pod, reason: str) -> None:
        for container in pod.asking():
            container.waiting = reason
        self.world.tell_pod(pod)
        self.startup.fails(pod, pod.asking()[0], reason)
        if reason == "ImagePullBackOff":
            self._later(290, self._still_fails, pod)

    def _still_fails(self, pod: Pod) -> None:
        """It tries again, in vain, and only events tell."""
        container = pod.asking()[0]
        if container.waiting == "ImagePullBackOff":
            for reason in ("ErrImagePull", "ImagePullBackOff"):
                self.startup.fails(pod, container, reason)
            self._later(300, self._still_fails, pod)

    def _pull_works(self, pod: Pod) -> None:
        for container in pod.containers:
            container.waiting = ""
        self._init(pod, 0, 3.0, is_here=False)

    def _init(self, pod: Pod, number: int, pull: float, *, is_here: bool) -> None:
        inits = [c for c in pod.containers if c.kind == "init"]
        if number < len(inits):
            self.startup.pull(pod, inits[number], 1.2, is_here=True)
            self._later(1.2, self._run_init, pod, inits[number], number, pull, is_here)
            return
        mains = [c for c in pod.containers if c.kind == "main"]
        sidecars = [c for c in pod.containers if c.kind == "sidecar"]
        if sidecars and pod.plan.sidecar_crashes:
            self.startup.pull(pod, sidecars[0], max(pull, 0.5), is_here=is_here)
            self._later(max(pull, 0.5), self._sidecar_crashes, pod, sidecars[0], 0)
            return
        for sidecar in sidecars:
            self.startup.pull(pod, sidecar, 0.01, is_here=True)
        self.startup.pull(pod, mains[0], max(pull, 0.5), is_here=is_here)
        self._later(max(pull, 0.5), self._start, pod)

    def _run_init(
        self, pod: Pod, container: Container, number: int, pull: float, is_here: bool
    ) -> None:
        container.start(self.world.second)
        self.startup.starts(pod, container)
        self.world.tell_pod(pod)
        self._later(pod.plan.init[number], self._end_init, pod, container, number, pull, is_here)

    def _end_init(
        self, pod: Pod, container: Container, number: int, pull: float, is_here: bool
    ) -> None:
        container.end(self.world.second, 0, "Completed")
        self.world.tell_pod(pod)
        self._init(pod, number + 1, pull, is_here=is_here)

    def _sidecar_crashes(self, pod: Pod, sidecar: Container, number: int) -> None:
        """A sidecar that does not come up keeps the GPU's container from ever starting."""
        sidecar.start(self.world.second)
        self.startup.starts(pod, sidecar, is_again=number > 0)
        if number >= len(pod.plan.sidecar_crashes):
            main = next(c for c in pod.containers if c.kind == "main")
            self.startup.pull(pod, main, 2, is_here=True)
            self._later(2, self._start, pod)
            return
        self.world.tell_pod(pod)
        self._later(pod.plan.sidecar_crashes[number], self._sidecar_down, pod, sidecar, number)

    def _sidecar_down(self, pod: Pod, sidecar: Container, number: int) -> None:
        sidecar.end(self.world.second, 1, "Error")
        sidecar.waiting = "CrashLoopBackOff"
        self.world.tell_pod(pod)
        self.startup.backs_off(pod, sidecar)
        wait = BACK_OFF[min(number, 5)] + self.rng.uniform(0.2, 2)
        self._later(wait, self._sidecar_crashes, pod, sidecar, number + 1)

    def _start(self, pod: Pod) -> None:
        """All lasting containers run; those after the first a second later."""
        mains = [c for c in pod.containers if c.kind == "main"]
        for sidecar in (c for c in pod.containers if c.kind == "sidecar"):
            if not sidecar.is_running():
                sidecar.start(self.world.second)
                self.startup.starts(pod, sidecar)
        mains[0].start(self.world.second)
        self.startup.starts(pod, mains[0])
        if len(mains) > 1:
            for container in mains[1:]:
                self.startup.pull(pod, container, 1.3, is_here=True)
            self._later(1.3, self._start_rest, pod, mains[1:])
        else:
            self._running(pod)

    def _start_rest(self, pod: Pod, rest: list[Container]) -> None:
        for container in rest:
            container.start(self.world.second)
            self.startup.starts(pod, container)
        self._running(pod)

    def _running(self, pod: Pod) -> None:
        plan = pod.plan
        pod.phase = "Running"
        if plan.load is None:
            pod.ready, pod.unready = self.world.second, None
        self.world.tell_pod(pod)
        if plan.load is not None and pod.ready is None:
            self._later(plan.load, self._get_ready, pod)
            self.startup.probes(pod, pod.asking()[0])
        crashed = pod.asking()[0].restarts
        if crashed < len(plan.crashes):
            self._later(plan.crashes[crashed], self._crash, pod)
        elif plan.run is not None:
            self._later(plan.run, self.finish, pod, plan.code)

    def _get_ready(self, pod: Pod) -> None:
        if all(c.is_running() for c in pod.asking()) and pod.ready is None:
            pod.ready, pod.unready = self.world.second, None
            self.world.tell_pod(pod)

    def _crash(self, pod: Pod) -> None:
        """A container of it ends; the first time it restarts at once, then it backs off."""
        container = pod.asking()[0]
        container.end(self.world.second, 1, "Error")
        if pod.ready is not None:
            pod.unready = self.world.second
        number = container.restarts
        if number:
            container.waiting = "CrashLoopBackOff"
            self.startup.backs_off(pod, container)
        self.world.tell_pod(pod)
        wait = BACK_OFF[min(number - 1, 5)] if number else 2
        self._later(wait + self.rng.uniform(0.2, 2), self._restart, pod, container)

    def _restart(self, pod: Pod, container: Container) -> None:
        container.start(self.world.second)
        self.startup.starts(pod, container, is_again=True)
        self._running(pod)

    def finish_after(self, seconds: float, pod: Pod) -> None:
        """Its containers will have done their work by then."""
        self._later(seconds, self.finish, pod, 0)

    def finish(self, pod: Pod, code: int) -> None:
        """Its containers end by themselves; helpers without a GPU may take longer."""
        asking = pod.asking()
        for container in asking:
            container.end(self.world.second, code, "Completed" if code == 0 else "Error")
        rest = [c for c in pod.containers if c.is_running()]
        if any(c.kind == "main" for c in rest):
            self.world.tell_pod(pod)
            self.world.clock.after(self.rng.uniform(1.2, 4), self._close, pod, code)
        else:
            self._close(pod, code)

    def _close(self, pod: Pod, code: int) -> None:
        if pod.gone or pod.is_terminal():
            return
        for container in pod.containers:
            if container.is_running():
                container.end(self.world.second, 0, "Completed")
        pod.phase = "Succeeded" if code == 0 else "Failed"
        if pod.ready is not None or pod.acknowledged is not None:
            pod.unready = self.world.second
        self.release(pod)
        self.world.tell_pod(pod)
        self.over(pod)

    def release(self, pod: Pod) -> None:
        """What it held is free for the schedulers."""
        if pod.released or not pod.node:
            return
        pod.released, pod.devices_until = True, self.world.now
        if pod.resource:
            pod.node.take(pod.resource, -pod.units)
        for card in pod.node.cards:
            for uuid, memory, cores in pod.entries:
                if card.uuid == uuid:
                    card.memory -= memory
                    card.cores -= cores
                    card.slots -= 1
        here = self.world.on_node[pod.node.name]
        if pod in here:
            here.remove(pod)
        self.world.kick()

    def over(self, pod: Pod) -> None:
        """Its controller learns of its end, once."""
        if call := self.world.ended.pop(pod.uid, None):
            self.world.clock.after(self.rng.uniform(1.1, 2.5), call, pod)

    def delete(self, pod: Pod, grace: int = 30, reason: str = "") -> None:
        """Someone asks for a pod's deletion."""
        world = self.world
        if pod.gone:
            return
        if reason:
            pod.disruption = (reason, world.second)
        if not pod.node_name:
            self.remove(pod)
            return
        if pod.asked is None:
            pod.asked, pod.grace = world.second, grace
            if pod.is_terminal():  # nothing runs any more: it goes at once
                self.remove(pod)
            else:
                world.tell_pod(pod)
                stop = min(pod.plan.stop * self.rng.uniform(0.8, 1.3), grace)
                world.clock.after(max(stop, 1.0), self._stop, pod)
        elif grace < pod.grace:
            pod.grace = grace
            world.tell_pod(pod)
            world.clock.after(max(0.5, pod.asked + grace - world.second), self._stop, pod)

    def _stop(self, pod: Pod) -> None:
        """The containers of a deleted pod have ended, if its kubelet lives to see it."""
        if pod.gone or pod.is_terminal():
            return
        if pod.node and (pod.node.removed or not pod.node.is_alive):
            self.world.clock.after(20, self._stop, pod)
            return
        if pod.plan.tells_end and pod.acknowledged is not None:
            for container in pod.containers:
                if container.is_running():
                    container.end(self.world.second, 143, "Error")
                container.waiting = ""
            pod.phase = "Failed"
            pod.unready = self.world.second
            self.release(pod)
            self.world.tell_pod(pod)
            self.over(pod)
        self.world.clock.after(self.rng.uniform(0.2, 0.9), self.remove, pod)

    def remove(self, pod: Pod) -> None:
        """The object is gone."""
        if pod.gone:
            return
        pod.gone, pod.removed = True, self.world.now
        self.release(pod)
        del self.world.pods[pod.uid]
        self.world.tell_pod(pod, "DELETED")
        self.over(pod)
        self.world.kick()

    def collect(self, node_name: str) -> None:
        """The garbage collector finds pods on a node that no longer exists."""
        for pod in [p for p in self.world.pods.values() if p.node_name == node_name]:
            if pod.node and not pod.node.removed:
                continue
            if not pod.is_terminal():
                pod.disruption = ("DeletionByPodGC", self.world.second)
                pod.phase = "Failed"
                self.release(pod)
                self.world.tell_pod(pod)
                self.over(pod)
            self.world.clock.after(self.rng.uniform(0.2, 0.8), self.remove, pod)
