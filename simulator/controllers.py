"""Controllers: Volcano Jobs, batch Jobs, Deployments and notebooks make pods and replace them.

When people ask for them belongs to `tenants`; how pods are placed and run to the other modules.
"""

import uuid
from dataclasses import dataclass, field, replace

from simulator.groups import Group
from simulator.kubelet import Kubelet
from simulator.owners import Top
from simulator.pods import Owner, Plan, Pod
from simulator.recipes import Recipe, make_pod
from simulator.schedulers import Schedulers
from simulator.world import World


@dataclass(eq=False)
class Platform:
    """A cluster with all that moves in it."""

    world: World
    kubelet: Kubelet
    schedulers: Schedulers

    def create(self, pod: Pod, ended=None) -> Pod:
        """Create a pod that the default scheduler places."""
        self.world.add_pod(pod, ended)
        if pod.scheduler == "default-scheduler":
            self.schedulers.submit(pod)
        return pod

    def pause(self, low: float, high: float) -> float:
        """A random number of seconds."""
        return self.world.rng.uniform(low, high)


@dataclass(eq=False)
class GangJob:
    """A Volcano Job: a gang that fails as a whole and is made again.

    With `is_volcano` off its pods go to the default scheduler one by one, although a PodGroup
    says that they belong together.
    """

    platform: Platform
    recipe: Recipe
    members: int
    queue: str
    run: float
    size: int = 0  # minMember, else all
    fails_after: tuple[float, ...] = ()  # of each attempt, until none is left
    late_members: float = 0  # seconds until the members after the first are created
    kind: tuple[str, str] = ("batch.volcano.sh/v1alpha1", "Job")
    is_volcano: bool = True
    keep: float = 600
    attempt: int = 0
    pods: list[Pod] = field(default_factory=list)
    is_over: bool = False

    def start(self) -> "GangJob":
        """Submit it: its PodGroup waits for quota first."""
        world, recipe = self.platform.world, self.recipe
        recipe.scheduler = "volcano" if self.is_volcano else recipe.scheduler
        uid = world.uid()
        self.owner = Owner(*self.kind, recipe.name, uid, uid, "training")
        world.add_owner(Top(*self.kind, recipe.name, uid, recipe.namespace, world.now))
        self.group = world.add_group(
            Group(
                f"{recipe.name}-{uid}",
                world.uid(),
                recipe.namespace,
                world.now,
                self.queue,
                self.size or self.members,
                self.members * recipe.units,
                self.owner.reference(),
                uid,
                recipe.resource,
            )
        )
        if self.is_volcano:
            self.platform.schedulers.enqueue(self.group, self._admitted)
        else:
            self.group.phase = "Inqueue"
            world.clock.after(1.0, self._admitted)
        return self

    def _admitted(self) -> None:
        if self.is_over:
            return
        world = self.platform.world
        if not self.is_volcano:
            world.tell_group(self.group)
        self.pods = []
        self.is_failing = False
        now = self.members if self.is_volcano and not self._is_late() else 1
        self._make(range(now), is_last=now == self.members)
        if now < self.members:
            world.clock.after(self.late_members or 5, self._make_late)

    def _is_late(self) -> bool:
        return bool(self.late_members) and self.attempt == 0

    def _make_late(self) -> None:
        """The members that are still missing; without a gang scheduler one after the other."""
        if self.is_over or not self.pods or self.is_failing:
            return
        made = len(self.pods)
        until = self.members if self.is_volcano else made + 1
        self._make(range(made, until), is_last=until == self.members)
        if until < self.members:
            self.platform.world.clock.after(5, self._make_late)

    def _make(self, numbers: range, *, is_last: bool) -> None:
        platform, recipe = self.platform, self.recipe
        made = []
        for number in numbers:
            failing = self.attempt < len(self.fails_after)
            plan = replace(recipe.plan, run=self.run + platform.pause(0, 3))
            if failing and number == 0:
                plan = replace(plan, run=self.fails_after[self.attempt], code=137)
            elif failing or not self.is_volcano:
                plan = replace(plan, run=None)  # it meets the others first
            pod = make_pod(
                platform.world,
                recipe,
                f"{recipe.name}-worker-{number}",
                self.owner,
                plan,
                labels={
                    "volcano.sh/job-name": recipe.name,
                    "volcano.sh/queue-name": self.queue,
                    "volcano.sh/task-index": str(number),
                },
                annotations={"scheduling.k8s.io/group-name": self.group.name},
            )
            pod.group, pod.queue = self.group, self.queue
            is_alone = not self.is_volcano or self._is_late()
            pod.scheduler = "default-scheduler" if is_alone else "volcano"
            made.append(platform.create(pod, self._ended))
        self.pods += made
        if is_last and self.pods[0].scheduler == "volcano":
            platform.schedulers.submit_gang(self.group, self.pods)
        platform.world.clock.after(6, self._all_run)

    def _all_run(self) -> None:
        if self.is_over or self.is_failing or self.group.phase == "Running":
            return
        running = sum(p.phase == "Running" for p in self.pods)
        if running >= self.group.size:
            self.group.phase, self.group.running = "Running", running
            self.platform.world.tell_group(self.group)
            if not self.is_volcano:
                for pod in self.pods:
                    self.platform.kubelet.finish_after(self.run, pod)
        else:
            self.platform.world.clock.after(20, self._all_run)

    def _ended(self, pod: Pod) -> None:
        if self.is_over or pod not in self.pods:
            return
        if pod.phase != "Succeeded" or pod.disruption:
            if not self.is_failing:
                self.is_failing = True
                self.platform.world.clock.after(self.platform.pause(4, 40), self._restart)
        elif all(p.phase == "Succeeded" for p in self.pods) and len(self.pods) == self.members:
            self.is_over = True
            self.group.phase, self.group.running = "Completed", 0
            self.platform.world.tell_group(self.group)
            self.platform.schedulers.withdraw(self.group)
            self.platform.world.clock.after(self.keep, self._clean)

    def _restart(self) -> None:
        """One failed, so all go; then all come again, with the quota still theirs."""
        if self.is_over:
            return
        for pod in self.pods:
            self.platform.kubelet.delete(pod)
        self.attempt += 1
        self.platform.world.clock.after(3, self._again)

    def _again(self) -> None:
        world = self.platform.world
        if self.is_over:
            return
        if any(not p.gone for p in self.pods):
            world.clock.after(3, self._again)
            return
        if self.attempt > 3:
            self.withdraw()
            return
        self.group.phase, self.group.running = "Pending", 0
        world.tell_group(self.group)
        if self.is_volcano:
            self.platform.schedulers.withdraw(self.group)
            self.platform.schedulers.enqueue(self.group, self._admitted)
        else:
            self.group.phase = "Inqueue"
            world.clock.after(5, self._admitted)

    def withdraw(self) -> None:
        """Its submitter deletes it."""
        if self.is_over:
            return
        self.is_over = True
        self.platform.schedulers.withdraw(self.group)
        self._clean()

    def _clean(self) -> None:
        self.platform.world.drop_owner(self.owner.uid)
        self.platform.world.drop_group(self.group)
        for pod in self.pods:
            self.platform.kubelet.delete(pod)


@dataclass(eq=False)
class BatchJob:
    """A batch Job: so many completions, so many at once; a failed pod is made again."""

    platform: Platform
    recipe: Recipe
    completions: int = 1
    parallelism: int = 1
    failures: int = 0  # of its first pods, this many fail
    back_off_limit: int = 4
    keep: float = 300
    submitted: int | None = None
    made: int = 0
    failed: int = 0
    pods: list[Pod] = field(default_factory=list)
    is_over: bool = False

    def start(self) -> "BatchJob":
        """Submit it."""
        world, recipe = self.platform.world, self.recipe
        uid = world.uid()
        self.owner = Owner("batch/v1", "Job", recipe.name, uid, uid, "batch")
        spec = {"completions": self.completions, "parallelism": self.parallelism}
        world.add_owner(Top("batch/v1", "Job", recipe.name, uid, recipe.namespace, world.now, spec))
        self._fill()
        return self

    def _fill(self) -> None:
        if self.is_over:
            return
        done = sum(p.phase == "Succeeded" for p in self.pods)
        alive = sum(not p.is_terminal() and not p.gone for p in self.pods)
        while alive < self.parallelism and done + alive < self.completions:
            plan = self.recipe.plan
            if self.made < self.failures:
                plan = replace(plan, run=(plan.run or 60) * 0.4, code=1)
            pod = make_pod(
                self.platform.world,
                self.recipe,
                f"{self.recipe.name}-{self.platform.world.suffix()}",
                self.owner,
                plan,
                labels={
                    "batch.kubernetes.io/job-name": self.recipe.name,
                    "batch.kubernetes.io/controller-uid": self.owner.uid,
                },
                submitted=self.submitted,
            )
            self.pods.append(self.platform.create(pod, self._ended))
            self.made += 1
            alive += 1

    def _ended(self, pod: Pod) -> None:
        if self.is_over:
            return
        world = self.platform.world
        if sum(p.phase == "Succeeded" for p in self.pods) >= self.completions:
            self._finish(self.keep)
        elif pod.phase != "Succeeded":
            self.failed += 1
            if self.failed > self.back_off_limit:
                self._finish(self.keep)
            else:
                world.clock.after(8.0 * self.failed, self._fill)
        else:
            world.clock.after(self.platform.pause(1.2, 3), self._fill)

    def _finish(self, keep: float) -> None:
        self.is_over = True
        self.platform.world.clock.after(keep, self._clean)

    def withdraw(self) -> None:
        """Its submitter deletes it."""
        if not self.is_over:
            self._finish(0.1)

    def give_up(self) -> None:
        """Its submitter deletes it if nothing of it has ever been placed."""
        if all(p.node is None for p in self.pods):
            self.withdraw()

    def _clean(self) -> None:
        self.platform.world.drop_owner(self.owner.uid)
        for pod in self.pods:
            self.platform.kubelet.delete(pod)


@dataclass(eq=False)
class Service:
    """A Deployment or StatefulSet: so many replicas, more and fewer as someone sets it."""

    platform: Platform
    recipe: Recipe
    kind: str = "Deployment"
    replicas: int = 0
    pods: list[Pod] = field(default_factory=list)
    odd_plans: list[Plan] = field(default_factory=list)  # what happens to its next pods
    made: int = 0

    def start(self, replicas: int) -> "Service":
        """Submit it."""
        world, recipe = self.platform.world, self.recipe
        self.hash = world.suffix(10)
        if self.kind == "Deployment":
            workload = f"Deployment/{recipe.namespace}/{recipe.name}"
            name = f"{recipe.name}-{self.hash}"
            self.owner = Owner(
                "apps/v1", "ReplicaSet", name, world.uid(), workload, "inference", True
            )
            # A uid of its own random numbers: later ones are as they were.
            top = str(uuid.uuid5(uuid.UUID(self.owner.uid), "deployment"))
            place = (recipe.namespace, world.now)
            above = world.add_owner(Top("apps/v1", "Deployment", recipe.name, top, *place))
            world.add_owner(Top("apps/v1", "ReplicaSet", name, self.owner.uid, *place, above=above))
        else:
            uid = world.uid()
            self.owner = Owner("apps/v1", "StatefulSet", recipe.name, uid, uid, "interactive", True)
            world.add_owner(
                Top("apps/v1", "StatefulSet", recipe.name, uid, recipe.namespace, world.now)
            )
        self.scale(replicas)
        return self

    def scale(self, replicas: int) -> None:
        """Set how many there should be."""
        self.replicas = replicas
        alive = [p for p in self.pods if p.asked is None and not p.is_terminal() and not p.gone]
        self.pods = alive
        # those not placed yet go first, then the youngest
        alive.sort(key=lambda p: (p.node_name != "", p.created))
        for pod in [p for p in alive if not p.node_name][: max(0, len(alive) - replicas)]:
            alive.remove(pod)
            self.platform.kubelet.delete(pod)
        while len(alive) > replicas:
            self.platform.kubelet.delete(alive.pop())
        while len(alive) < replicas:
            alive.append(self._make())

    def _make(self) -> Pod:
        recipe = self.recipe
        plan = self.odd_plans.pop(0) if self.odd_plans else recipe.plan
        if self.kind == "Deployment":
            name = f"{recipe.name}-{self.hash}-{self.platform.world.suffix()}"
            labels = {"app": recipe.name, "pod-template-hash": self.hash}
        else:
            name = f"{recipe.name}-{len(self.pods)}"
            labels = {"app": recipe.name, "statefulset.kubernetes.io/pod-name": name}
        self.made += 1
        pod = make_pod(self.platform.world, recipe, name, self.owner, plan, labels=labels)
        return self.platform.create(pod, self._ended)

    def _ended(self, pod: Pod) -> None:
        if pod in self.pods:
            self.pods.remove(pod)
            self.platform.world.clock.after(1.1, self._heal)
        if pod.is_terminal() and not pod.gone and pod.asked is None:
            self.platform.world.clock.after(900, self.platform.kubelet.delete, pod)

    def _heal(self) -> None:
        self.scale(self.replicas)
