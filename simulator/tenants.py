"""Who uses the cluster: namespaces, queues, and what people submit by the hour of the day.

What was scripted to go wrong is in `faults`.
"""

from dataclasses import dataclass
from math import cos, pi

from simulator.clock import DAY, HOUR
from simulator.controllers import BatchJob, GangJob, Platform, Service
from simulator.groups import Namespace
from simulator.nodes import GPU
from simulator.pods import Container, Plan
from simulator.pools import devices, pools
from simulator.recipes import Recipe

TEAM = "cost.example.com/team"
NAMESPACES: dict[str, dict[str, str]] = {
    "research-llm": {TEAM: "research"},
    "vision": {TEAM: "vision", "example.com/tier": "gold"},
    "science-hpc": {},
    "robotics": {},
    "serving-chat": {TEAM: "product"},
    "serving-search": {TEAM: "product"},
    "notebooks-lab": {},
    "growth": {TEAM: "research"},
    "scratch": {},
    "platform": {TEAM: "platform"},
}
HOSTILE = {
    "example.com/submitted-by": "<img src=x onerror=alert(1)>\"'; drop table holds;--",
    "example.com/comment": '=HYPERLINK("http://example.com","1")\n+1\t@SUM(A1)',
}


@dataclass(frozen=True)
class Mix:
    """One sort of work on one pool."""

    pool: str
    resource: str
    units: tuple[int, ...]
    hours: float  # mean run time
    load: float  # share of the pool that it asks for
    namespaces: tuple[str, ...]
    members: tuple[int, ...] = (1,)  # gangs, or parallelism of a batch Job
    is_gang: bool = False
    share: tuple[tuple[int, int], ...] = ()


def mixes(number: int) -> tuple[Mix, ...]:
    """What people submit on the n-th cluster."""
    hami = ((28000, 20), (9000, 45), (14000, 30), (4000, 60), (20000, 25))
    if number % 2 == 0:
        research = ("research-llm", "research-llm", "vision", "robotics", "growth")
        return (
            Mix("train", GPU, (8,), 2.6, 0.86, research, (1, 1, 2, 2, 2, 4), True),
            Mix("owned", GPU, (1, 1, 2, 4), 1.9, 0.8, ("science-hpc", "vision", "scratch"), (1, 3)),
            Mix("mig", "nvidia.com/mig-3g.40gb", (1,), 4.8, 0.65, ("vision", "scratch")),
            Mix("mig", "nvidia.com/mig-4g.40gb", (1,), 6, 0.6, ("science-hpc",)),
            Mix("mig", "nvidia.com/mig-1g.10gb", (1,), 4, 0.7, ("growth",)),
            Mix("mig", "nvidia.com/mig-7g.80gb", (1,), 8, 0.45, ("science-hpc",)),
            Mix("mig40", "nvidia.com/mig-2g.10gb", (1, 2), 4.8, 0.7, ("vision",)),
            Mix("mig40", "nvidia.com/mig-1g.5gb", (1,), 3.2, 0.7, ("scratch",)),
            Mix("mig40", "nvidia.com/mig-1g.10gb", (1,), 3.2, 0.6, ("scratch",)),
            Mix("mig40", GPU, (1,), 6, 0.7, ("vision",)),
            Mix("single", GPU, (1, 1, 2), 4.5, 0.65, ("science-hpc", "growth")),
            Mix("slice", "nvidia.com/gpu.shared", (1,), 7.5, 0.35, ("growth",)),
            Mix("slice2", GPU, (1,), 5.5, 0.6, ("growth", "scratch")),
            Mix("hami", GPU, (1, 1, 2), 4.5, 0.1, ("vision", "growth"), share=hami),
            Mix("tight", GPU, (2,), 1.2, 0.6, ("vision", "science-hpc")),
            Mix("cpu", "", (0,), 0.3, 0.02, ("platform", "scratch")),
        )
    return (
        Mix("train", GPU, (8,), 3.4, 0.85, ("research-llm", "robotics"), (1, 2, 3), True),
        Mix("owned", GPU, (1, 2, 4), 2.0, 0.8, ("science-hpc", "vision"), (1, 2)),
        Mix("mig", "nvidia.com/mig-2g.12gb", (1,), 4, 0.75, ("vision",)),
        Mix("mig", "nvidia.com/mig-1g.6gb", (1,), 4, 0.75, ("growth",)),
        Mix("slice", GPU, (1,), 6, 0.4, ("growth",)),
        Mix("hami", GPU, (1,), 5, 0.1, ("growth",), share=hami),
        Mix("cpu", "", (0,), 0.4, 0.02, ("platform",)),
    )


def make_namespaces(world) -> None:
    """The namespaces, each as old as the cluster."""
    for name, labels in NAMESPACES.items():
        created = world.begin - 200 * DAY
        world.namespaces[name] = Namespace(name, world.uid(), created, dict(labels))


def busy(instant: int) -> float:
    """How much people do at an instant, 1 at the busiest: nights and week-ends are quiet."""
    hour = instant % DAY / HOUR
    weekday = (instant // DAY + 3) % 7  # 1970-01-01 was a Thursday
    day = 0.55 - 0.45 * cos((hour - 3) / 24 * 2 * pi)
    return day * (0.55 if weekday > 4 else 1.0)


class Tenants:
    """The people of one cluster."""

    def __init__(self, platform: Platform, number: int, size: str):
        self.platform, self.number, self.size = platform, number, size
        self.world = platform.world
        self.rng = platform.world.rng
        self.count = 0
        self.services: list[tuple[Service, int, int]] = []

    def start(self) -> None:
        """Everyone begins to work."""
        for mix in mixes(self.number):
            units = self._units(mix)
            if not units:
                continue
            middle = sum(mix.members) / len(mix.members) * sum(mix.units) / len(mix.units)
            hourly = mix.load * units / max(middle * mix.hours, 0.1)
            for _ in range(min(8, round(hourly * mix.hours * 0.6))):  # what began before
                self.world.clock.after(self.rng.uniform(0, 3600), self._submit, mix)
            self._next(mix, hourly)
        self._start_services()
        self._start_notebooks()

    def _units(self, mix: Mix) -> int:
        if not mix.resource:
            return 6
        return sum(
            n.devices.get(mix.resource, 0) for n in self.world.nodes.values() if n.pool == mix.pool
        )

    def _next(self, mix: Mix, hourly: float) -> None:
        peak = hourly * 2.1
        self.world.clock.after(self.rng.expovariate(peak / 3600), self._maybe, mix, hourly)

    def _maybe(self, mix: Mix, hourly: float) -> None:
        part = (self.world.now - self.world.begin) / (self.world.end - self.world.begin)
        is_blocked = mix.pool == "tight" and 0.35 < part < 0.5  # kept for two gangs that deadlock
        if self.rng.random() < busy(self.world.now) and not is_blocked and self._units(mix):
            self._submit(mix)
        self._next(mix, hourly)

    def _submit(self, mix: Mix) -> None:
        rng, world = self.rng, self.world
        self.count += 1
        namespace = rng.choice(mix.namespaces)
        run = min(max(rng.lognormvariate(-0.35, 0.85) * mix.hours * 3600, 240), 20 * 3600)
        units = rng.choice(mix.units)
        users = ("ana", "bo", "chen", "dina")
        recipe = Recipe(
            f"{'vj' if mix.is_gang else 'job'}-{mix.pool}-{self.count:05}",
            namespace,
            mix.pool,
            mix.resource,
            units,
            Plan(run=run, pull=rng.choice((6, 14, 45, 90)) if rng.random() < 0.3 else 4),
            image=f"registry.example.com/{namespace}/work:{rng.randrange(1, 6)}",
            labels=self._labels(namespace),
            annotations={"example.com/submitted-by": rng.choice(users)},
            priority=-10 if mix.pool == "owned" and rng.random() < 0.5 else 0,
        )
        if self.size == "measured" and namespace in ("vision", "science-hpc"):
            recipe.cpu = 8
        recipe.plan.tells_end = rng.random() < 0.6
        if mix.share:
            recipe.share = rng.choice(mix.share)
        if rng.random() < 0.15:
            recipe.plan.init = (rng.uniform(5, 60),)
        if mix.is_gang:
            self._submit_gang(mix, recipe, run)
            return
        parallel = rng.choice(mix.members)
        job = BatchJob(
            self.platform,
            recipe,
            completions=parallel * (2 if rng.random() < 0.2 else 1),
            parallelism=parallel,
            failures=1 if rng.random() < 0.07 else 0,
            keep=rng.choice((60, 300, 1800)),
            submitted=world.second - rng.randrange(2, 120) if rng.random() < 0.1 else None,
        ).start()
        if rng.random() < 0.04:
            world.clock.after(rng.uniform(30, 1800), job.withdraw)
        world.clock.after(rng.uniform(3, 12) * 3600, job.give_up)

    def _labels(self, namespace: str) -> dict[str, str]:
        if namespace == "vision" and self.rng.random() < 0.3:
            return {TEAM: "research"}  # a guest: the pod's own label wins
        return {"example.com/revision": self.rng.choice(("1e5", "null", "NaN", "v2", "0x1F"))}

    def _submit_gang(self, mix: Mix, recipe: Recipe, run: float) -> None:
        rng = self.rng
        fails: tuple[float, ...] = ()
        if rng.random() < 0.18:
            fails = tuple(rng.uniform(60, run) for _ in range(rng.choice((1, 1, 2))))
        queue = "robotics" if recipe.namespace == "robotics" else "research"
        quota = self.platform.schedulers.quotas[queue]
        job = GangJob(
            self.platform,
            recipe,
            min(rng.choice(mix.members), quota // 8),
            queue,
            run,
            fails_after=fails,
            late_members=rng.uniform(20, 90) if rng.random() < 0.1 else 0,
            keep=rng.choice((120, 900)),
        ).start()
        if rng.random() < 0.06:
            self.world.clock.after(rng.uniform(120, 5000), job.withdraw)

    def _start_services(self) -> None:
        """Deployments that follow the day."""
        nodes = sum(n.pool == "serve" for n in self.world.nodes.values())
        if not nodes:
            return
        parts = (("chat", 0.4, 2), ("search", 0.33, 1), ("embed", 0.22, 1), ("rerank", 0.15, 1))
        for name, part, units in parts:
            most = max(1, int(nodes * 8 * part / units))
            proxy = Container("proxy", "registry.example.com/mesh/proxy:1.22", kind="sidecar")
            serving = Container(
                "vllm", "registry.example.com/serve/vllm:0.12", True, limits={GPU: units}
            )
            serving.limits_only = name == "search"
            recipe = Recipe(
                name,
                "serving-chat" if name in ("chat", "embed") else "serving-search",
                "serve",
                GPU,
                units,
                Plan(load=self.rng.uniform(90, 400), pull=60, stop=8, tells_end=name != "embed"),
                containers=(proxy, serving) if name == "chat" else (serving,),
                restart="Always",
                annotations=HOSTILE if name == "rerank" else {},
            )
            service = Service(self.platform, recipe).start(max(1, most // 2))
            self.services.append((service, max(1, most * 3 // 4), most))
        self._scale()

    def _scale(self) -> None:
        load = busy(self.world.now)
        for service, least, most in self.services:
            wanted = least + round((most - least) * min(1, load * self.rng.uniform(0.85, 1.1)))
            if abs(wanted - service.replicas) > (most - least) // 6:
                service.scale(wanted)
        self.world.clock.after(self.rng.uniform(900, 1800), self._scale)

    def _start_notebooks(self) -> None:
        """Notebooks: someone opens one in the morning and forgets it for hours."""
        resource = {"slice": "nvidia.com/gpu.shared" if self.number % 2 == 0 else GPU}
        pool = next((p for p in pools(self.size, self.number) if p.name == "slice"), None)
        if not pool:
            return
        assert resource["slice"] in devices(pool)
        people = 12 if self.size == "full" else 5 if self.size == "demo" else 2
        for person in range(people):
            extra = Container("oauth-proxy", "registry.example.com/mesh/oauth:7")
            lab = Container(
                "lab", "registry.example.com/lab/jupyter:5", True, limits={resource["slice"]: 1}
            )
            recipe = Recipe(
                f"lab-{person}",
                "notebooks-lab",
                "slice",
                resource["slice"],
                1,
                Plan(stop=3),
                containers=(extra, lab),
                restart="Always",
                labels={TEAM: self.rng.choice(("research", "vision", "product"))},
            )
            service = Service(self.platform, recipe, "StatefulSet").start(0)
            self.world.clock.after(self.rng.uniform(0, 4 * 3600), self._open, service)

    def _open(self, service: Service) -> None:
        if busy(self.world.now) > 0.3:
            service.scale(1)
            self.world.clock.after(self.rng.uniform(1, 14) * 3600, self._shut, service)
        else:
            self.world.clock.after(2400, self._open, service)

    def _shut(self, service: Service) -> None:
        service.scale(0)
        self.world.clock.after(self.rng.uniform(2, 9) * 3600, self._open, service)


def quotas(world, number: int) -> dict[str, int]:
    """GPUs of each Volcano queue: together less than people want."""
    units = sum(n.count for n in world.nodes.values() if n.pool == "train")
    robotics = max(8, units // 3 // 8 * 8)
    return {
        "research": max(units - robotics, units // 2, min(units, 8)),
        "robotics": robotics,
        "loose": 64,
    }
