"""The GPUs themselves: which a node has, how they are cut, and which pod held which, and when.

Kubernetes does not tell this, so it is worked out after the events: the kubelet gave a pod its
devices when it admitted it, and took them back when the pod was over.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple
from uuid import UUID

from simulator.clock import SECOND
from simulator.devices import Model, per_gpu
from simulator.nodes import GPU, Node
from simulator.pods import Pod
from simulator.world import World

LAG_SECONDS = 3
"""From an exporter's own collection, every half minute, to the scrape that reads it."""


@dataclass(frozen=True)
class Use:
    """A pod has a device from a whole second to another."""

    pod: Pod
    begin: int
    end: int


class Fault(NamedTuple):
    """From when to when a GPU was of no use to anyone, and the error that told of it."""

    begin: int
    end: int
    code: int

    @property
    def is_lost(self) -> bool:
        """It has fallen off the bus: nothing reads it any more."""
        return self.code == 79


@dataclass(eq=False)
class Device:
    """What a pod may hold: a GPU, or an instance of it."""

    card: "GpuCard"
    resource: str
    begin: int
    end: int
    profile: str = ""
    instance: int = -1  # GPU_I_ID
    uses: list[Use] = field(default_factory=list)
    replicas: int = 1
    users: dict[str, int] = field(default_factory=dict)
    """While holds are dealt out: pod uid -> replicas of this device."""

    @property
    def free(self) -> int:
        """Replicas that nobody has."""
        return self.replicas - sum(self.users.values())

    @property
    def memory_mib(self) -> int:
        """Memory of the GPU, or of the instance."""
        if not self.profile:
            return self.card.model.memory_mib
        return self.card.model.memory_mib * int(self.profile.split(".")[1][:-2]) // _gib(self.card)

    @property
    def part(self) -> float:
        """How much of the GPU's compute it is."""
        return int(self.profile[0]) / self.card.model.slices[0] if self.profile else 1.0


def _gib(card: "GpuCard") -> int:
    return max(int(name.split(".")[1][:-2]) for name in card.model.profiles)


@dataclass(eq=False)
class GpuCard:
    """One physical GPU."""

    node: Node
    index: int
    uuid: str
    model: Model
    begin: int
    end: int
    faults: list["Fault"] = field(default_factory=list)
    devices: list[Device] = field(default_factory=list)

    @property
    def bus(self) -> str:
        """Its PCI address."""
        return f"00000000:{(self.index + 1) * 0x11:02X}:00.0"


def deal(world: World) -> list[GpuCard]:
    """All GPUs of a cluster, with who held them."""
    rng = Random(f"{world.seed}/{world.name}/gpus")
    found: list[GpuCard] = []
    by_node: dict[str, list[Pod]] = defaultdict(list)
    for pod in world.all_pods:
        if pod.node and pod.units and pod.devices_from is not None:
            by_node[pod.node.uid].append(pod)
    for node in world.all_nodes:
        cards = _cards(node, rng, world.end // SECOND)
        _hand_out(node, cards, by_node[node.uid], world.end)
        for begin, end, resource in node.lost:
            if resource == GPU:
                _lose(cards, begin, end)
        _upgraded(node, cards)
        found += cards
    return found


def _cards(node: Node, rng: Random, last: int) -> list[GpuCard]:
    end = node.removed or last
    begin = node.created // SECOND
    cards = [
        GpuCard(node, n, f"GPU-{UUID(int=rng.getrandbits(128), version=4)}", node.model, begin, end)
        for n in range(node.count)
    ]
    for card, told in zip(cards, node.cards, strict=False):
        card.uuid = told.uuid  # HAMi has told it already
    first = node.history[0][1].capacity if node.cuts else node.devices
    spells = [(begin, first), *node.cuts]
    for number, (since, devices) in enumerate(spells):
        until = spells[number + 1][0] if number + 1 < len(spells) else end
        if any(devices.values()):
            _cut(node, cards, devices, since, until)
    return cards


def _cut(node: Node, cards: list[GpuCard], devices: dict[str, int], begin: int, end: int) -> None:
    """Lay the instances on the cards, the largest first, as the profiles allow."""
    if node.sharing not in ("mig", "single"):
        for card in cards:
            replicas = 10 if node.sharing == "hami" else node.replicas
            name = next(iter(node.devices))
            card.devices.append(Device(card, name, begin, end, replicas=replicas))
        return
    if node.sharing == "single":
        profile = node.labels["nvidia.com/gpu.product"].split("-MIG-")[1]
        for card in cards:
            for number in range(per_gpu(node.model, profile)):
                card.devices.append(Device(card, GPU, begin, end, profile, 7 + number))
        return
    wanted = [
        name.removeprefix("nvidia.com/mig-")
        for name, units in devices.items()
        if name != GPU
        for _ in range(units)
    ]
    whole = devices.get(GPU, 0)
    for card in cards[len(cards) - whole :] if whole else []:
        card.devices.append(Device(card, GPU, begin, end))
    cut = cards[: len(cards) - whole]
    room = {card.index: list(node.model.slices) for card in cut}
    for profile in sorted(wanted, key=lambda p: (node.model.profiles[p], p), reverse=True):
        compute, memory = node.model.profiles[profile]
        for card in cut:
            if room[card.index][0] >= compute and room[card.index][1] >= memory:
                room[card.index][0] -= compute
                room[card.index][1] -= memory
                instance = 1 + sum(d.begin == begin for d in card.devices)
                name = f"nvidia.com/mig-{profile}"
                card.devices.append(Device(card, name, begin, end, profile, instance))
                break


def _hand_out(node: Node, cards: list[GpuCard], pods: list[Pod], last: int) -> None:
    """Give devices in the order of the kubelet's doing."""
    steps: list[tuple[int, int, int, Pod]] = []
    for number, pod in enumerate(pods):
        end = min(pod.devices_until or last, (node.removed or last) * SECOND)
        assert pod.devices_from is not None
        steps += [(pod.devices_from, 1, number, pod), (max(end, pod.devices_from), 0, number, pod)]
    devices = [device for card in cards for device in card.devices]
    held: dict[str, list[tuple[Device, int]]] = {}
    for now, is_begin, _, pod in sorted(steps, key=lambda s: s[:3]):
        second = now // SECOND
        if is_begin:
            held[pod.uid] = [(d, second) for d in _choose(devices, pod, second)]
            continue
        for device, begin in held.pop(pod.uid, ()):
            device.users.pop(pod.uid, None)
            if second > begin:
                device.uses.append(Use(pod, begin, second))
    for device in devices:
        device.uses.sort(key=lambda use: use.begin)


def _choose(devices: list[Device], pod: Pod, now: int) -> list[Device]:
    """The devices that a pod gets: HAMi's own choice, else the emptiest, the first first."""
    here = [d for d in devices if d.begin <= now < d.end and d.resource == pod.resource]
    if pod.entries:
        chosen = [d for uuid, _, _ in pod.entries for d in here if d.card.uuid == uuid]
    else:
        chosen = []
        for _ in range(pod.units):
            if left := [d for d in here if d.free > 0 and d not in chosen]:
                best = max(left, key=lambda d: d.free)
                chosen.append(best)
                best.users[pod.uid] = 1
    for device in chosen:
        device.users[pod.uid] = 1
    return chosen


def _lose(cards: list[GpuCard], begin: int, end: int) -> None:
    """A whole GPU falls off the bus: best one that works, and none whose part is another one."""
    fit = [c for c in cards if c.devices and not c.devices[0].profile]

    def rank(card: GpuCard) -> tuple[bool, bool]:
        uses = card.devices[0].uses
        plays = any(u.begin < end and begin < u.end and u.pod.plan.part for u in uses)
        is_busy = any(u.begin < begin - 1800 and begin + 1800 < u.end for u in uses)
        return plays, not is_busy

    for card in sorted(fit, key=rank)[:1]:
        card.faults.append(Fault(begin, min(end, card.end), 79))


def _upgraded(node: Node, cards: list[GpuCard]) -> None:
    """Before a driver upgrade a GPU has an error in its memory, which only a reset mends."""
    states = [(now, told.driver) for now, told, _ in node.history]
    begin = next((now for now, state in states if state == "upgrade-required"), None)
    end = next((now for now, s in states if begin and now > begin and s == "upgrade-done"), None)
    if begin and end and len(cards) > 3:
        cards[3].faults.append(Fault(begin - 1500, end, 48))


def offset(world: World, name: str) -> int:
    """When in its half minute Prometheus asks a target, in milliseconds."""
    return Random(f"{world.seed}/{world.name}/scrape/{name}").randrange(5_000, 29_000)


def beat_at(world: World, node: Node, now: int) -> int:
    """A moment near an instant from which some seconds fall into one reading of the exporter."""
    return now // 30 * 30 + offset(world, f"dcgm/{node.name}") // 1000 - LAG_SECONDS - 20
