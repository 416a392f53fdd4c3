"""The default scheduler (with preemption, and HAMi's cards), and Volcano with queues and gangs.

What a bound pod does belongs to `kubelet`; who asks for pods to `controllers`.
"""

from simulator.clock import HOUR
from simulator.groups import Group
from simulator.kubelet import Kubelet
from simulator.nodes import GPU, Card, Node
from simulator.pods import Pod
from simulator.world import World

SHARED = ("research", "robotics")  # queues that may borrow from each other


class Schedulers:
    """Both schedulers of a cluster; each runs a cycle a moment after something changed."""

    def __init__(self, world: World, kubelet: Kubelet, quotas: dict[str, int]):
        self.world, self.kubelet = world, kubelet
        self.rng = world.rng
        self.quotas = quotas
        self.used = dict.fromkeys(quotas, 0)
        self.line: list[Pod] = []
        self.gangs: list[tuple[Group, list[Pod]]] = []
        self.waiting: list[Group] = []
        self.admitted: dict[str, object] = {}
        self.ready_groups: dict[str, object] = {}
        self.nominated: dict[str, int] = {}
        self.told_quota: dict[str, int] = {}
        self._is_due = False
        world.kicks.append(self.kick)

    def kick(self) -> None:
        """Run a cycle soon, unless one is due already."""
        if not self._is_due:
            self._is_due = True
            self.world.clock.after(self.rng.uniform(0.05, 0.6), self.cycle)

    def submit(self, pod: Pod) -> None:
        """A pod enters the line of the default scheduler."""
        self.line.append(pod)
        self.kick()

    def enqueue(self, group: Group, admitted) -> None:
        """A PodGroup waits for its queue's quota; `admitted` is called when it has it."""
        self.waiting.append(group)
        self.admitted[group.uid] = admitted
        self.kick()

    def submit_gang(self, group: Group, pods: list[Pod]) -> None:
        """The pods of an admitted group wait until enough of them fit together."""
        self.gangs.append((group, pods))
        self.kick()

    def withdraw(self, group: Group) -> None:
        """A group no longer waits, and gives back the quota that it had."""
        if group in self.waiting:
            self.waiting.remove(group)
        elif group.uid in self.admitted and self.admitted.pop(group.uid) is None:
            self.used[group.queue] -= group.gpus
        self.gangs = [(g, pods) for g, pods in self.gangs if g is not group]
        self.kick()

    def cycle(self) -> None:
        """One look at everything that waits."""
        self._is_due = False
        self._admit_groups()
        self._place_gangs()
        self.line = [p for p in self.line if not p.gone and p.node is None]
        self.line.sort(key=lambda p: -p.priority)
        if self._is_settling():
            self.world.clock.after(5, self.kick)
        full: set[tuple[str, str, int]] = set()
        for pod in self.line:
            shape = (pod.pool, pod.resource, pod.units)
            if pod.is_gated or pod.asked is not None or (shape in full and not pod.share[0]):
                continue
            if node := self._fit(pod):
                self._bind(pod, node)
                continue
            full.add(shape)
            if pod.priority >= 1000 and self.nominated.get(pod.uid, 0) < self.world.second - 90:
                self._preempt(pod)
            self._tell_full(pod)
            if pod.unschedulable is None:
                pod.unschedulable = self.world.second
                self.world.tell_pod(pod)

    def _tell_full(self, pod: Pod) -> None:
        """Why no node fits: it may tell of a node more than once, and of preemption apart."""
        nodes = [n for n in self.world.nodes.values() if not n.removed]
        here = sum(n.pool == pod.pool for n in nodes)
        parts = [f"{here} Insufficient {pod.resource or 'cpu'}"] if here else []
        if here < len(nodes):
            parts.append(f"{len(nodes) - here} node(s) didn't match Pod's node affinity/selector")
        none = f"0/{len(nodes)} nodes are available"
        text = f"{none}: {', '.join(parts)}. preemption: {none}: {here} No preemption victims "
        text += "found for incoming pod."
        self.world.events.of_pod(
            pod, "FailedScheduling", text, component="default-scheduler", kind="Warning"
        )

    def _is_settling(self) -> bool:
        return any(n.settled > self.world.now for n in self.world.nodes.values())

    def _admit_groups(self) -> None:
        blocked: set[str] = set()
        for group in list(self.waiting):
            if group.queue in blocked or group.gpus > self.quotas[group.queue]:
                continue
            if not self._has_quota(group):
                self._tell_quota(group)
                if group.created < self.world.now - 5 * HOUR:  # smaller ones pass it only so long
                    blocked.add(group.queue)
                continue
            self.waiting.remove(group)
            self.used[group.queue] += group.gpus
            admitted = self.admitted[group.uid]
            self.admitted[group.uid] = None
            group.phase = "Inqueue"
            self.world.tell_group(group)
            assert callable(admitted)
            self.world.clock.after(self.rng.uniform(0.8, 2.0), admitted)

    def _tell_quota(self, group: Group) -> None:
        """Volcano says so in every cycle; so often it is written."""
        if self.told_quota.get(group.uid, 0) < self.world.second - 600:
            self.told_quota[group.uid] = self.world.second
            text = f"queue resource quota insufficient: insufficient {group.resource}"
            self.world.events.of_group(group, "Unschedulable", text)

    def _has_quota(self, group: Group) -> bool:
        """Its queue's own quota, or what the queues that share the nodes leave idle."""
        if self.used[group.queue] + group.gpus <= self.quotas[group.queue]:
            return True
        if group.queue not in SHARED:
            return False
        idle = sum(self.quotas[q] - self.used[q] for q in SHARED)
        return group.gpus <= idle and not any(g.queue != group.queue for g in self.waiting)

    def _place_gangs(self) -> None:
        for group, pods in list(self.gangs):
            free = {
                n.name: n.free(group.resource, self.world.now)
                for n in self.world.nodes.values()
                if n.pool == pods[0].pool
            }
            chosen: list[tuple[Pod, Node]] = []
            for pod in pods:
                name = next((n for n, units in free.items() if units >= pod.units), None)
                if name is None:
                    break
                free[name] -= pod.units
                chosen.append((pod, self.world.nodes[name]))
            if len(chosen) < group.size:
                continue
            rest = pods[len(chosen) :]
            self.gangs = [(g, p) for g, p in self.gangs if g is not group]
            if rest:
                self.line.extend(rest)
            for pod, node in chosen:
                self._bind(pod, node)

    def _fit(self, pod: Pod) -> Node | None:
        now = self.world.now
        best: tuple[int, Node] | None = None
        for node in self.world.nodes.values():
            if node.pool != pod.pool or not node.is_up:
                continue
            if not pod.resource:
                return node
            free = node.free(pod.resource, now)
            if free < pod.units or (pod.share[0] and not self._cards(pod, node)):
                continue
            if best is None or free < best[0]:  # fill the fullest node first
                best = (free, node)
        return best[1] if best else None

    @staticmethod
    def _cards(pod: Pod, node: Node) -> list[Card]:
        """HAMi: the cards that have room for each of the pod's parts, fullest memory first."""
        memory, cores = pod.share
        fits = [
            card
            for card in sorted(node.cards, key=lambda c: (-c.memory, c.uuid))
            if card.memory + memory <= card.memory_mib
            and card.cores + cores <= 100
            and card.slots < 10
        ]
        return fits[: pod.units] if len(fits) >= pod.units else []

    def _bind(self, pod: Pod, node: Node) -> None:
        """Give the pod its node now; the API server says so a moment later."""
        self.assume(pod, node)
        if pod.share[0]:
            memory, cores = pod.share
            for card in self._cards(pod, node):
                card.memory += memory
                card.cores += cores
                card.slots += 1
                pod.entries.append((card.uuid, memory, cores))
        self.world.clock.after(self.rng.uniform(0.02, 0.3), self.bound, pod)

    def assume(self, pod: Pod, node: Node) -> None:
        """What the pod asks for is taken, before anyone else knows."""
        if pod.resource:
            node.take(pod.resource, pod.units)
        pod.node = node
        self.world.on_node[node.name].append(pod)

    def bound(self, pod: Pod) -> None:
        """The API server says which node a pod has."""
        if pod.gone or not pod.node:
            return
        pod.bound, pod.node_name = self.world.now, pod.node.name
        if pod.entries:
            kind = "NVIDIA"
            text = "".join(f"{u},{kind},{mib},{cores}:" for u, mib, cores in pod.entries) + ";"
            pod.annotations |= {
                "hami.io/vgpu-node": pod.node_name,
                "hami.io/vgpu-time": str(self.world.second),
                "hami.io/vgpu-devices-to-allocate": ";",
                "hami.io/vgpu-devices-allocated": text,
                "hami.io/bind-phase": "success",
            }
        self.world.tell_pod(pod)
        text = f"Successfully assigned {pod.namespace}/{pod.name} to {pod.node_name}"
        by = "volcano" if pod.scheduler == "volcano" else "default-scheduler"
        self.world.events.of_pod(pod, "Scheduled", text, component=by)
        self.kubelet.accept(pod)

    def _preempt(self, pod: Pod) -> None:
        """Make room for a pod of high priority by ending pods of low priority on one node."""
        for node in self.world.nodes.values():
            if node.pool != pod.pool or not node.is_up:
                continue
            low = [
                p
                for p in self.world.on_node[node.name]
                if p.priority < 0 and p.resource == GPU and p.asked is None and p.bound
            ]
            room = node.free(pod.resource, self.world.now)
            if room + sum(p.units for p in low) < pod.units:
                continue
            self.nominated[pod.uid] = self.world.second
            for victim in low:
                if room >= pod.units:
                    break
                room += victim.units
                text = f"Preempted by pod {pod.uid} on node {node.name}"
                self.world.events.of_pod(victim, "Preempted", text, component=pod.scheduler, by=pod)
                self.kubelet.delete(victim, reason="PreemptionByScheduler")
            return

    def pin(self, pod: Pod, node: Node) -> None:
        """A manifest that names its node: no scheduler is asked, and none says when."""
        self.assume(pod, node)
        pod.node_name, pod.has_condition = node.name, False
        pod.bound = self.world.now
        self.kubelet.accept(pod)
