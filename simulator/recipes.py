"""What a workload's pods look like: containers, requests, labels; and one pod made from it.

Which workloads there are belongs to `tenants` and `faults`.
"""

import json
from dataclasses import dataclass, field, replace
from typing import Any

from simulator.clock import SECOND, iso
from simulator.pods import Container, Owner, Plan, Pod
from simulator.world import World


@dataclass(eq=False)
class Recipe:
    """The pod template of a workload."""

    name: str
    namespace: str
    pool: str
    resource: str = ""
    units: int = 0  # effective request
    plan: Plan = field(default_factory=Plan)
    image: str = "registry.example.com/train/torch:2.10"
    containers: tuple[Container, ...] = ()
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    priority: int = 0
    share: tuple[int, int] = (0, 0)
    restart: str = "Never"
    grace: int = 30
    scheduler: str = "default-scheduler"
    cpu: int = 0  # limit of the containers with a GPU, in cores; 0: none
    spec: str = ""

    def parts(self) -> tuple[Container, ...]:
        """Its containers, in the order of the statuses."""
        cpu = {"cpu": self.cpu} if self.cpu else {}
        if self.containers:
            return self.containers
        limits = {self.resource: self.units} | cpu if self.units else {}
        if self.share[0]:
            limits |= {"nvidia.com/gpumem": self.share[0], "nvidia.com/gpucores": self.share[1]}
        found = [
            Container(f"init-{n}", "registry.example.com/tools/fetch:1.4", kind="init")
            for n in range(len(self.plan.init))
        ]
        return (*found, Container("main", self.image, bool(self.units), limits=limits))

    def written(self) -> str:
        """The spec as JSON, open at the end so that the node can be added."""
        if self.spec:
            return self.spec
        spec: dict[str, Any] = {}
        inits = [_container(c) for c in self.parts() if c.kind != "main"]
        if inits:
            spec["initContainers"] = inits
        spec |= {
            "containers": [_container(c) for c in self.parts() if c.kind == "main"],
            "restartPolicy": self.restart,
            "terminationGracePeriodSeconds": self.grace,
            "schedulerName": self.scheduler,
            "nodeSelector": {"example.com/pool": self.pool},
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
        }
        if self.priority:
            spec["priority"] = self.priority
        self.spec = json.dumps(spec, separators=(",", ":"))[:-1]
        return self.spec


def _container(container: Container) -> dict[str, Any]:
    limits = {name: str(units) for name, units in container.limits.items()}
    requests: dict[str, str] = {} if container.limits_only else {"cpu": "4", "memory": "32Gi"}
    if not container.limits_only:
        requests |= limits
    found: dict[str, Any] = {
        "name": container.name,
        "image": container.image,
        "resources": {"limits": limits, "requests": requests} if requests else {"limits": limits},
    }
    if container.kind == "sidecar":
        found["restartPolicy"] = "Always"
    return found


def make_pod(
    world: World,
    recipe: Recipe,
    name: str,
    owner: Owner | None,
    plan: Plan,
    *,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    submitted: int | None = None,
) -> Pod:
    """A pod of a recipe, not yet created."""
    notes = recipe.annotations | (annotations or {})
    if submitted is not None:
        notes["example.com/submitted-at"] = iso(submitted)
    return Pod(
        name=name,
        uid=world.uid(),
        namespace=recipe.namespace,
        created=world.now // SECOND * SECOND,
        owner=owner,
        labels=recipe.labels | (labels or {}),
        annotations=notes,
        containers=[replace(c, known={}) for c in recipe.parts()],
        spec=recipe.written(),
        plan=plan,
        resource=recipe.resource,
        units=recipe.units,
        share=recipe.share,
        pool=recipe.pool,
        priority=recipe.priority,
        submitted=submitted,
    )
