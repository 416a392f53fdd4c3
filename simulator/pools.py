"""Which nodes a simulated cluster has: pools of equal nodes, by size of fleet.

What a node does belongs to `nodes`; who uses a pool to `tenants`.
"""

from collections import Counter
from dataclasses import dataclass

from simulator.clock import DAY, SECOND
from simulator.devices import MODELS, Model, layouts
from simulator.nodes import GPU, Card, Node
from simulator.world import World

SIZES = ("tiny", "demo", "full", "layouts", "measured")


@dataclass(frozen=True)
class Pool:
    """Equal nodes."""

    name: str
    model: str
    sharing: str  # whole, mig, single, shared, hami, cpu
    nodes: tuple[int, int, int]  # tiny, demo, full
    count: int  # GPUs of a node
    cut: tuple[tuple[str, ...], ...] = ()  # MIG profiles of each card that is cut
    replicas: int = 1
    is_renamed: bool = False
    strategy: str = "time-slicing"
    labels: tuple[tuple[str, str], ...] = ()
    is_json_register: bool = True


OWNED = (("example.com/pool-owner", "owned"),)
SPOT = (("karpenter.sh/capacity-type", "spot"),)
OVERFULL = ("4g.40gb", "3g.40gb")
MIXED = ("3g.40gb", "2g.20gb", "1g.10gb", "1g.10gb")
SMALL = ("2g.10gb", "2g.10gb", "1g.5gb", "1g.5gb", "1g.10gb")

ALPHA = (
    Pool("train", "h100-80gb", "whole", (4, 9, 40), 8),
    Pool("owned", "a100-80gb", "whole", (2, 4, 16), 8, labels=OWNED),
    Pool("serve", "l40s", "whole", (1, 3, 10), 8),
    Pool("tight", "a100-40gb", "whole", (4, 4, 4), 2),
    Pool("mig", "h100-80gb", "mig", (1, 1, 4), 4, cut=(OVERFULL, OVERFULL, MIXED, ("7g.80gb",))),
    Pool("mig40", "a100-40gb", "mig", (1, 1, 3), 4, cut=(SMALL, SMALL)),
    Pool("single", "h100-80gb", "single", (1, 1, 2), 2, cut=(("1g.10gb",) * 7,) * 2),
    Pool("slice", "t4", "shared", (1, 1, 3), 4, replicas=4, is_renamed=True),
    Pool("slice2", "t4", "shared", (1, 1, 2), 2, replicas=10),
    Pool("hami", "l40s", "hami", (1, 1, 3), 4),
    Pool("cpu", "t4", "cpu", (1, 1, 4), 0),
)
BETA = (
    Pool("train", "h200-141gb", "whole", (3, 4, 24), 8),
    Pool("owned", "h100-80gb", "whole", (1, 2, 6), 8, labels=SPOT),
    Pool("serve", "l40s", "whole", (1, 5, 20), 8),
    Pool("mig", "a30-24gb", "mig", (1, 1, 3), 4, cut=(("2g.12gb", "1g.6gb", "1g.6gb"),) * 4),
    Pool("slice", "v100-32gb", "shared", (1, 1, 2), 4, replicas=3, strategy="mps"),
    Pool("hami", "l40s", "hami", (1, 1, 2), 2, is_json_register=False),
    Pool("cpu", "t4", "cpu", (1, 1, 3), 0),
)
MEASURED = (
    (
        Pool("train", "h100-80gb", "whole", (3, 3, 3), 8),
        Pool("owned", "a100-80gb", "whole", (1, 1, 1), 8, labels=OWNED),
        Pool("serve", "l40s", "whole", (1, 1, 1), 6),
        Pool("mig", "h100-80gb", "mig", (1, 1, 1), 3, cut=(OVERFULL, MIXED, ("7g.80gb",))),
        Pool("single", "h100-80gb", "single", (1, 1, 1), 1, cut=(("1g.10gb",) * 7,)),
        Pool("slice", "t4", "shared", (1, 1, 1), 2, replicas=4, is_renamed=True),
        Pool("slice2", "t4", "shared", (1, 1, 1), 1, replicas=10),
        Pool("hami", "l40s", "hami", (1, 1, 1), 1),
        Pool("cpu", "t4", "cpu", (1, 1, 1), 0),
    ),
    (
        Pool("train", "h200-141gb", "whole", (1, 1, 1), 8),
        Pool("owned", "h100-80gb", "whole", (1, 1, 1), 4, labels=SPOT),
        Pool("serve", "l40s", "whole", (1, 1, 1), 4),
        Pool("mig", "a30-24gb", "mig", (1, 1, 1), 1, cut=(("2g.12gb", "1g.6gb", "1g.6gb"),)),
        Pool("slice", "v100-32gb", "shared", (1, 1, 1), 1, replicas=3, strategy="mps"),
        Pool("cpu", "t4", "cpu", (1, 1, 1), 0),
    ),
)
"""Two clusters of together 64 GPUs: as small as a fleet can be that shows all that metrics show."""
CARDS = tuple(
    tuple(tuple(MODELS["a100-40gb"].profiles)[kind] for kind in layout)
    for layout in (
        [((1, 1), (1, 2), (2, 2), (3, 4), (4, 4), (7, 8)).index(kind) for kind in found]
        for found in layouts()
    )
)
"""Each layout of an eight-slice card, in the profiles of an A100 of 40 GB."""
LAYOUTS = (
    *(
        Pool(f"layout-{number:02}", "a100-40gb", "mig", (1, 1, 1), 1, cut=(card,))
        for number, card in enumerate(CARDS)
    ),
    Pool("hami", "l40s", "hami", (2, 2, 2), 4),
)


def pools(size: str, number: int) -> tuple[Pool, ...]:
    """The pools of the fleet's n-th cluster."""
    if size == "layouts":
        return LAYOUTS
    if size == "measured":
        return MEASURED[number % 2]
    return ALPHA if number % 2 == 0 else BETA


def build_nodes(world: World, size: str, number: int) -> None:
    """Put the nodes of all pools into the cluster; they joined long before the recorder."""
    place = {"tiny": 0, "demo": 1, "full": 2}.get(size, 0)
    rack = 0
    for pool in pools(size, number):
        for index in range(pool.nodes[place]):
            rack += 1
            age = world.rng.randrange(20, 200) * DAY + world.rng.randrange(DAY)
            node = make_node(world, pool, f"{pool.name}-{index:02}", world.begin - age, rack // 4)
            node.up(world.begin - DAY)
            world.add_node(node)


def make_node(world: World, pool: Pool, name: str, created: int, rack: int) -> Node:
    """A node of a pool, its device plugin not yet up."""
    model = MODELS[pool.model]
    node = Node(
        name=name,
        uid=world.uid(),
        created=created // SECOND * SECOND,
        pool=pool.name,
        model=model,
        sharing=pool.sharing,
        count=pool.count,
        devices=devices(pool),
        labels={
            "kubernetes.io/hostname": name,
            "example.com/pool": pool.name,
            "cloud.provider.com/topology-rack": f"rack-{rack:02}",
        }
        | (dict(pool.labels) if pool.count else {}),
        replicas=pool.replicas,
        is_json_register=pool.is_json_register,
        since=created // SECOND,
    )
    if pool.sharing == "hami":
        node.cards = [Card(f"GPU-{world.uid()}", model.memory_mib) for _ in range(pool.count)]
    node.labels |= gpu_labels(pool, model)
    return node


def devices(pool: Pool) -> dict[str, int]:
    """What the device plugin offers on a node of the pool."""
    match pool.sharing:
        case "cpu":
            return {}
        case "mig":
            counts = Counter(profile for card in pool.cut for profile in card)
            found = {f"nvidia.com/mig-{name}": number for name, number in sorted(counts.items())}
            return {GPU: pool.count - len(pool.cut)} | found
        case "single":
            return {GPU: sum(len(card) for card in pool.cut)}
        case "shared":
            name = "nvidia.com/gpu.shared" if pool.is_renamed else GPU
            return {name: pool.count * pool.replicas}
        case "hami":
            return {GPU: pool.count * 10}
        case _:
            return {GPU: pool.count}


def gpu_labels(pool: Pool, model: Model) -> dict[str, str]:
    """What GPU feature discovery says of a node of the pool."""
    if not pool.count:
        return {}
    product, count = model.product, pool.count
    found: dict[str, str] = {}
    if pool.sharing == "single":
        product += f"-MIG-{pool.cut[0][0]}"
        count = sum(len(card) for card in pool.cut)
    if pool.sharing in ("single", "mig"):
        found = {
            "nvidia.com/mig.strategy": "single" if pool.sharing == "single" else "mixed",
            "nvidia.com/mig.capable": "true",
            "nvidia.com/mig.config.state": "success",
        }
    if pool.sharing == "shared":
        product += "" if pool.is_renamed else "-SHARED"
        found = {
            "nvidia.com/gpu.replicas": str(pool.replicas),
            "nvidia.com/gpu.sharing-strategy": pool.strategy,
        }
    if pool.sharing == "whole":
        found = {
            "nvidia.com/gpu.sharing-strategy": "none",
            "nvidia.com/gpu.replicas": "1",
            "nvidia.com/gpu-driver-upgrade-state": "upgrade-done",
        }
    return found | {
        "nvidia.com/gpu.product": product,
        "nvidia.com/gpu.count": str(count),
        "nvidia.com/gpu.memory": str(model.memory_mib),
    }
