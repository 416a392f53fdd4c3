"""What goes wrong, and what is rare: scripted on nodes, and on the record itself.

Rare workloads are in `oddities`; what people submit every day in `tenants`.
"""

from simulator.clock import SECOND
from simulator.controllers import Platform
from simulator.nodes import GPU, Node
from simulator.oddities import Oddities
from simulator.owners import KINDS
from simulator.pods import Pod
from simulator.pools import Pool, make_node, pools


class Faults:
    """The script of one cluster, in fractions of its recorded time."""

    def __init__(self, platform: Platform, number: int, size: str):
        self.platform, self.world = platform, platform.world
        self.number, self.size = number, size
        self.span = self.world.end - self.world.begin
        self.oddities = Oddities(platform, number)

    def when(self, part: float) -> int:
        """An instant inside the recorded time."""
        return self.world.begin + int(self.span * part)

    def _at(self, part: float, what, *args) -> None:
        self.world.clock.at(self.when(part), what, *args)

    def node(self, pool: str, index: int) -> Node | None:
        """The n-th present node of a pool."""
        found = [n for n in self.world.nodes.values() if n.pool == pool and not n.removed]
        return found[index] if -len(found) <= index < len(found) else None

    def plan(self) -> None:
        """Ask the clock for all of it."""
        self._at(0.12, self._lose_heartbeat, "serve", 0, 700)
        self._at(0.63, self._lose_heartbeat, "train", 0, 260)
        self._at(0.18, self._drop_gpu, "owned", 0, GPU, 3 * 3600)
        self._at(0.30, self._restart_plugin, "slice", 0, 190)
        self._at(0.72, self._restart_plugin, "mig", 0, 150)
        self._at(0.34, self._cordon, "owned", -1, 2 * 3600)
        self._at(0.40, self._upgrade, "train", -1, 2400)
        self._at(0.47, self._reconfigure, "mig", 0)
        self._at(0.26, self._delete_node, "train", 1, 2400)
        self._at(0.78, self._add_node, "serve", "serve-new")
        if self.number % 2 == 0:
            self._at(0.22, self._drop_gpu, "mig", 0, "nvidia.com/mig-1g.10gb", 5400)
            self._at(0.55, self._gap, 1500)
        self._at(0.5, self._relabel, "growth")
        self.oddities.plan(self._at)

    def _lose_heartbeat(self, pool: str, index: int, seconds: float) -> None:
        """The node no longer answers; its pods stay."""
        if node := self.node(pool, index):
            node.is_alive = node.is_ready = False
            node.since = self.world.second
            self.world.tell_node(node)
            self.world.clock.after(seconds, self._answer, node)

    def _answer(self, node: Node) -> None:
        node.is_alive = node.is_ready = True
        node.since = self.world.second
        self.world.tell_node(node)
        self.world.kick()

    def _drop_gpu(self, pool: str, index: int, resource: str, seconds: float) -> None:
        """A GPU fell off the bus: one less is allocatable."""
        if node := self.node(pool, index):
            node.allocatable[resource] -= 1
            node.lost.append((self.world.second, self.world.second + int(seconds), resource))
            self.world.tell_node(node)
            self.oddities.refused(node, resource)
            self.world.clock.after(seconds, self._restore, node)

    def _restore(self, node: Node) -> None:
        node.up(self.world.now)
        self.world.tell_node(node)
        self.world.kick()

    def _restart_plugin(self, pool: str, index: int, seconds: float) -> None:
        """While the device plugin restarts the kubelet says that there is none of its devices."""
        if node := self.node(pool, index):
            node.capacity = dict.fromkeys(node.capacity, 0)
            node.allocatable = dict.fromkeys(node.allocatable, 0)
            self.world.tell_node(node)
            self.world.clock.after(seconds, self._restore, node)

    def _cordon(self, pool: str, index: int, seconds: float) -> None:
        if node := self.node(pool, index):
            node.is_cordoned = True
            self.world.tell_node(node)
            self.world.clock.after(seconds, self._uncordon, node)

    def _uncordon(self, node: Node) -> None:
        node.is_cordoned = False
        node.settled = self.world.now + 4 * SECOND
        self.world.tell_node(node)
        self.world.kick()

    def _drain(self, node: Node) -> None:
        node.is_cordoned = True
        self.world.tell_node(node)
        for pod in list(self.world.on_node[node.name]):
            self.platform.kubelet.delete(pod, reason="EvictionByEvictionAPI")

    def _upgrade(self, pool: str, index: int, seconds: float) -> None:
        """Drain, upgrade the driver, come back."""
        if node := self.node(pool, index):
            self._drain(node)
            key = "nvidia.com/gpu-driver-upgrade-state"
            self.world.clock.after(120, self._label, node, key, "upgrade-required")
            self.world.clock.after(180, self._label, node, key, "pod-restart-required")
            self.world.clock.after(seconds, self._label, node, key, "upgrade-done")
            self.world.clock.after(seconds + 30, self._uncordon, node)

    def _label(self, node: Node, key: str, value: str) -> None:
        node.labels[key] = value
        self.world.tell_node(node)

    def _reconfigure(self, pool: str, index: int) -> None:
        """Drain, cut the cards anew, come back."""
        node = self.node(pool, index)
        if not node:
            return
        self._drain(node)
        key = "nvidia.com/mig.config.state"
        self.world.clock.after(150, self._label, node, key, "pending")
        self.world.clock.after(200, self._cut, node, {name: 0 for name in node.devices})
        new = dict(node.devices)
        if "nvidia.com/mig-7g.80gb" in new:  # one whole card becomes 4g and 3g more
            del new["nvidia.com/mig-7g.80gb"]
            new["nvidia.com/mig-4g.40gb"] += 1
            new["nvidia.com/mig-3g.40gb"] += 1
        self.world.clock.after(290, self._label, node, key, "rebooting")
        self.world.clock.after(420, self._cut, node, new)
        self.world.clock.after(423, self._label, node, key, "success")
        self.world.clock.after(440, self._uncordon, node)

    def _cut(self, node: Node, devices: dict[str, int]) -> None:
        if any(devices.values()):
            node.devices = dict(devices)
        node.cuts.append((self.world.second, dict(devices)))
        node.capacity, node.allocatable = dict(devices), dict(devices)
        self.world.tell_node(node)

    def _pool(self, name: str) -> Pool:
        return next(p for p in pools(self.size, self.number) if p.name == name)

    def _delete_node(self, pool: str, index: int, until: float) -> None:
        """A node goes while pods run on it; later its name comes back, with another uid."""
        node = self.node(pool, index)
        busy = [n for n in self.world.nodes.values() if n.pool == pool and self._runs(n)]
        if not node or not busy:
            self.world.clock.after(900, self._delete_node, pool, index, until)
            return
        node = node if node in busy else busy[0]
        here = self._runs(node)
        node.removed = self.world.second
        self.world.tell_node(node, "DELETED")
        del self.world.nodes[node.name]
        # one of them has ended, and told so, before anyone looked
        self.world.clock.after(25, self.platform.kubelet.finish, here[0], 0)
        self.world.clock.after(58, self.platform.kubelet.collect, node.name)
        self.world.clock.after(until, self._add_node, pool, node.name)

    def _runs(self, node: Node) -> list[Pod]:
        here = self.world.on_node[node.name]
        return [p for p in here if p.phase == "Running" and p.asked is None]

    def _add_node(self, pool: str, name: str) -> None:
        """A node joins: first not Ready, then Ready, then with its GPUs."""
        node = make_node(self.world, self._pool(pool), name, self.world.now, 9)
        known = dict(node.labels)
        node.labels = {k: v for k, v in known.items() if not k.startswith("nvidia.com/")}
        node.is_ready = False
        self.world.add_node(node)
        self.world.clock.after(45, self._answer, node)
        self.world.clock.after(200, self._discover, node, known)

    def _discover(self, node: Node, labels: dict[str, str]) -> None:
        node.labels = labels
        self._restore(node)

    def _relabel(self, name: str) -> None:
        """A namespace changes hands: later holds only."""
        namespace = self.world.namespaces[name]
        namespace.labels = {"cost.example.com/team": "product"}
        self.world.tell_namespace(namespace)

    def _gap(self, seconds: float) -> None:
        """The recorder is away; what happens meanwhile leaves no trace but what a list shows."""
        world = self.world
        for stream in world.streams.values():
            stream.listening = False
        # a node that comes and goes unseen, and a pod on it that outlives it
        world.clock.after(100, self._ghost_node)
        self.oddities.in_gap()
        kinds = ("nodes", "namespaces", "groups", "pods", "events", *KINDS)
        for number, kind in enumerate(kinds):
            world.clock.after(seconds + number, world.list_all, kind)

    def _ghost_node(self) -> None:
        node = make_node(self.world, self._pool("serve"), "serve-ghost", self.world.now, 9)
        node.pool = "ghost"
        node.up(self.world.now - 10 * SECOND)
        self.world.add_node(node)
        self.oddities.on_ghost(node)
        self.world.clock.after(1390, self._drop_ghost, node)

    def _drop_ghost(self, node: Node) -> None:
        node.removed = self.world.second
        del self.world.nodes[node.name]
        self.world.tell_node(node, "DELETED")
        self.world.clock.after(140, self.platform.kubelet.collect, node.name)
