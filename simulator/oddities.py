"""Rare workloads: every case that an accounting rule speaks of happens at least once.

What people submit every day is in `tenants`; what befalls nodes in `faults`.
"""

from collections.abc import Callable
from dataclasses import replace

from simulator.clock import SECOND
from simulator.controllers import BatchJob, GangJob, Platform, Service
from simulator.nodes import GPU, Node
from simulator.pods import Container, Owner, Plan, Pod
from simulator.recipes import Recipe, make_pod
from simulator.tenants import HOSTILE

IMAGE = "registry.example.com/odd/work:1"


class Oddities:
    """The rare workloads of one cluster."""

    def __init__(self, platform: Platform, number: int):
        self.platform, self.world, self.number = platform, platform.world, number

    def plan(self, at: Callable[..., None]) -> None:
        """Ask the clock for all of them; `at` takes the part of the recorded time."""
        at(0.05, self._init_asks_more)
        at(0.07, self._no_image)
        at(0.09, self._crash_loop)
        at(0.10, self._sidecar_first)
        at(0.14, self._bare)
        at(0.16, self._impossible)
        at(0.20, self._pinned)
        at(0.24, self._gated)
        at(0.28, self._slow_service)
        at(0.30, self._patient)
        at(0.34, self._urgent)
        at(0.36, self._moved_deletion)
        at(0.38, self._elastic)
        at(0.58, self._forced)
        at(0.60, self._two_containers)
        at(0.64, self._quick_successor)
        at(0.66, self._member_crashes)
        at(0.70, self._withdrawn_group)
        at(0.85, self._too_big_group)
        at(0.96, self._impossible_still)
        if any(node.pool == "tight" for node in self.world.nodes.values()):
            at(0.36, self._livelock)
            at(0.42, self._deadlock)

    def _recipe(self, name: str, pool: str = "owned", units: int = 1, **more) -> Recipe:
        more = {"plan": Plan(run=2400), "image": IMAGE} | more
        return Recipe(name, more.pop("namespace", "scratch"), pool, GPU, units, **more)

    def _job(self, recipe: Recipe, **more) -> BatchJob:
        return BatchJob(self.platform, recipe, **more).start()

    def _init_asks_more(self) -> None:
        """The init container asks for two GPUs, the main one for one: the pod takes two."""
        init = Container("shard", IMAGE, True, "init", {GPU: 2})
        main = Container("main", IMAGE, True, limits={GPU: 1}, limits_only=True)
        plan = Plan(run=1500, init=(90,))
        self._job(self._recipe("init-two", units=2, plan=plan, containers=(init, main)))

    def _no_image(self) -> None:
        """An image that is not there; one is mended after a while, one never."""
        self._job(self._recipe("typo-image", plan=Plan(run=900, pull_error=1300)))
        job = self._job(self._recipe("lost-image", plan=Plan(run=900, pull_error=90000)))
        self.world.clock.after(4000, job.withdraw)

    def _crash_loop(self) -> None:
        """A container that crashes again and again, restarted in place."""
        plan = Plan(run=3000, crashes=(40, 12, 9, 15, 8))
        self._job(self._recipe("crashing", plan=plan, restart="OnFailure"))
        self._job(
            self._recipe("once-down", plan=Plan(run=3000, crashes=(600,)), restart="OnFailure")
        )

    def _sidecar_first(self) -> None:
        """A sidecar that must be up first crashes: the GPU waits."""
        proxy = Container("proxy", IMAGE, kind="sidecar")
        main = Container("main", IMAGE, True, limits={GPU: 1})
        plan = Plan(run=1200, sidecar_crashes=(6, 5, 7))
        self._job(self._recipe("proxy-first", plan=plan, containers=(proxy, main)))

    def _bare(self) -> None:
        """Pods without an owner, with names and notes that a page must not trust."""
        for number, name in enumerate(("xn--80ak6aa92e.select-1", "null", "0")):
            recipe = self._recipe(
                name,
                plan=Plan(run=1800 + 600 * number),
                annotations=HOSTILE,
                labels={"app": "1e10", "version": "true"},
            )
            self.platform.create(make_pod(self.world, recipe, name, None, recipe.plan))

    def _impossible(self) -> None:
        """No node is large enough; its submitter gives up."""
        job = self._job(self._recipe("too-large", units=16))
        self.world.clock.after(5000, job.withdraw)

    def _impossible_still(self) -> None:
        self._job(self._recipe("too-large-still", units=16))

    def _pinned(self) -> None:
        """A manifest that names its node: no condition ever says when it was bound."""
        for node in self.world.nodes.values():
            if node.pool == "owned" and node.free(GPU, self.world.now) > 0:
                recipe = self._recipe("pinned")
                pod = make_pod(self.world, recipe, "pinned", None, Plan(run=1500))
                pod.scheduler = "none"
                self.platform.schedulers.pin(pod, node)
                self.world.add_pod(pod)
                return
        self.world.clock.after(60, self._pinned)

    def _gated(self) -> None:
        """A scheduling gate holds a pod back for a while."""
        recipe = self._recipe("gated", plan=Plan(run=600))
        pod = make_pod(self.world, recipe, "gated", None, recipe.plan)
        pod.is_gated = True
        self.platform.create(pod)
        self.world.clock.after(1700, self._open_gate, pod)

    def _open_gate(self, pod: Pod) -> None:
        pod.is_gated = False
        self.world.tell_pod(pod)
        self.world.kick()

    def _slow_service(self) -> None:
        """A service that is not Ready for longer than loading may last."""
        plan = Plan(load=3000, pull=20)
        recipe = self._recipe("slow-start", namespace="serving-chat", plan=plan, restart="Always")
        service = Service(self.platform, recipe).start(1)
        self.world.clock.after(9000, service.scale, 0)

    def _urgent(self) -> None:
        """A job of high priority makes room for itself."""
        for number in range(6):
            plan = Plan(run=1500)
            self._job(self._recipe(f"urgent-{number}", units=4, priority=1000, plan=plan))

    def _patient(self) -> None:
        """Jobs of low priority, for those above to push aside."""
        for number in range(4):
            plan = Plan(run=20000, tells_end=number % 2 == 0)
            self._job(self._recipe(f"patient-{number}", units=2, priority=-10, plan=plan))

    def _moved_deletion(self) -> None:
        """Deletion with a long grace, then with a shorter one: the deadline moves back."""
        plan = Plan(run=90000, stop=290)
        recipe = self._recipe("slow-stop", plan=plan, grace=300)
        pod = self.platform.create(make_pod(self.world, recipe, "slow-stop", None, plan))
        self.world.clock.after(5400, self.platform.kubelet.delete, pod, 300)
        self.world.clock.after(5490, self.platform.kubelet.delete, pod, 120)
        late = self._recipe("no-word", plan=replace(plan, tells_end=False, stop=20))
        pod = self.platform.create(make_pod(self.world, late, "no-word", None, late.plan))
        self.world.clock.after(5000, self.platform.kubelet.delete, pod)

    def _elastic(self) -> None:
        """Three members of which two are enough; a gang that fails twice; one that comes late."""
        recipe = self._recipe("elastic", "owned", 1, namespace="vision")
        GangJob(self.platform, recipe, 3, "loose", 4000, size=2).start()
        recipe = self._recipe("fragile", "owned", 1, namespace="vision")
        GangJob(self.platform, recipe, 2, "loose", 2500, fails_after=(700, 90)).start()
        recipe = self._recipe("late-workers", "owned", 1, namespace="vision", priority=900)
        GangJob(self.platform, recipe, 2, "loose", 1800, late_members=5400).start()

    def _forced(self) -> None:
        """Deleted with no grace while it runs: gone at once."""
        recipe = self._recipe("forced", plan=Plan(run=90000))
        pod = self.platform.create(make_pod(self.world, recipe, "forced", None, recipe.plan))
        self.world.clock.after(4100, self.platform.kubelet.remove, pod)

    def _quick_successor(self) -> None:
        """On a full node a pod goes and another comes within the second: both seem to hold it."""
        for node in self.world.nodes.values():
            here = [p for p in self.world.on_node[node.name] if p.phase == "Running"]
            if node.pool != "owned" or not here or node.free(GPU, self.world.now) or not node.is_up:
                continue
            leaving = here[0]
            recipe = self._recipe("quick", units=leaving.units)
            pod = make_pod(self.world, recipe, "quick", None, recipe.plan)
            pod.scheduler = "none"
            self.world.add_pod(pod)
            turn = (self.world.second + 3) * SECOND
            self.world.clock.at(turn - 40_000, self.platform.kubelet.remove, leaving)
            self.world.clock.at(turn - 39_000, self.platform.schedulers.assume, pod, node)
            self.world.clock.at(turn - 20_000, self.platform.schedulers.bound, pod)
            return
        self.world.clock.after(300, self._quick_successor)

    def _two_containers(self) -> None:
        """Two containers with a GPU each, and a third without that ends a little later."""
        main = tuple(Container(f"rank-{n}", IMAGE, True, limits={GPU: 1}) for n in range(2))
        tail = Container("upload", IMAGE)
        recipe = self._recipe(
            "two-ranks", units=2, plan=Plan(run=1700, crashes=(300,)), containers=(*main, tail)
        )
        recipe.restart = "OnFailure"
        self._job(recipe)

    def _member_crashes(self) -> None:
        """A member of a gang restarts in place: the others wait for it."""
        plan = Plan(crashes=(900, 30), pull=3)
        recipe = self._recipe("shaky", "owned", 1, plan=plan, restart="OnFailure")
        GangJob(self.platform, recipe, 2, "loose", 3000).start()

    def _withdrawn_group(self) -> None:
        """A gang that its queue can never admit, deleted before it has any pod."""
        recipe = self._recipe("never-admitted", "owned", 8)
        job = GangJob(self.platform, recipe, 40, "robotics", 600).start()
        self.world.clock.after(3300, job.withdraw)

    def _too_big_group(self) -> None:
        """The same, still waiting at the end."""
        recipe = self._recipe("still-waiting", "owned", 8)
        GangJob(self.platform, recipe, 40, "loose", 600).start()

    def _livelock(self) -> None:
        """A gang that no pool can hold as a whole: it starts with most of it, and gives up."""
        recipe = self._recipe("never-whole", "tight", 2, priority=500)
        kind = ("kubeflow.org/v1", "PyTorchJob")
        fails = (400.0,) * 4
        GangJob(
            *(self.platform, recipe, 5, "loose", 2000),
            fails_after=fails,
            kind=kind,
            is_volcano=False,
        ).start()

    def _deadlock(self) -> None:
        """Two gangs that nobody places as gangs: each needs three nodes of four and holds two."""
        jobs = []
        for name in ("dl-a", "dl-b"):
            recipe = self._recipe(name, "tight", 2, priority=500)
            jobs.append(
                GangJob(
                    self.platform,
                    recipe,
                    3,
                    "loose",
                    2000,
                    kind=("kubeflow.org/v1", "PyTorchJob"),
                    is_volcano=False,
                )
            )
        first, second = jobs
        first.start()
        self.world.clock.after(2, second.start)
        self.world.clock.after(4 * 3600, second.withdraw)
        self.world.clock.after(40, self._clear_for, (first, second))

    def _clear_for(self, jobs: tuple[GangJob, GangJob]) -> None:
        """Someone clears the nodes for them."""
        for pod in list(self.world.pods.values()):
            if pod.pool == "tight" and all(pod not in job.pods for job in jobs):
                self.platform.kubelet.delete(pod)

    def refused(self, node: Node, resource: str) -> None:
        """The kubelet refuses a pod that the scheduler gave a GPU that fell off."""
        recipe = self._recipe("refused", node.pool)
        recipe.resource = resource
        plan = Plan(is_refused=True)
        uid = self.world.uid()
        owner = Owner("batch/v1", "Job", "refused", uid, uid, "batch")
        pod = make_pod(self.world, recipe, f"refused-{self.world.suffix()}", owner, plan)
        pod.scheduler = "none"
        self.world.add_pod(pod)
        self.platform.schedulers.assume(pod, node)
        self.world.clock.after(0.4, self.platform.schedulers.bound, pod)
        self.world.clock.after(900, self.platform.kubelet.delete, pod)

    def in_gap(self) -> None:
        """Unseen: pods that come and go; seen once: pods that come and stay; lost: that go."""
        for number in range(3):
            recipe = self._recipe(f"unseen-{number}", plan=Plan(run=300), priority=900)
            job = BatchJob(self.platform, recipe, keep=60)
            self.world.clock.after(210 + number, job.start)
            self.world.clock.after(1300, job.withdraw)
            late = BatchJob(self.platform, self._recipe(f"late-{number}", plan=Plan(run=5000)))
            self.world.clock.after(400 + number, late.start)
        running = [
            p
            for p in self.world.pods.values()
            if p.pool == "owned" and p.phase == "Running" and p.asked is None
        ]
        for pod in running[:4]:
            self.world.clock.after(200, self.platform.kubelet.remove, pod)

    def on_ghost(self, node: Node) -> None:
        """A pod on a node that the recorder never sees."""
        recipe = self._recipe("on-ghost", "ghost", 2, plan=Plan(run=90000))
        self.platform.create(make_pod(self.world, recipe, "on-ghost", None, recipe.plan))
