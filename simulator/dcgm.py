"""What the DCGM exporters tell: names, labels and copies in all the ways that clusters see them.

What the GPUs did is in `tracks`, how values are read in `readings`, set-ups in `exporters`; what
readings are spoilt in `spoilt`.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import pairwise
from zlib import crc32

from simulator import phases, readings
from simulator.casting import Xid
from simulator.exporters import Exporter, Target
from simulator.gpus import Use
from simulator.openmetrics import Page, Series, labelled
from simulator.readings import Span
from simulator.spoilt import Spoilt
from simulator.tracks import Track

NAMES = {
    "util": ("DEV_GPU_UTIL", "DEV_GPU_UTIL_RATIO"),
    "used": ("DEV_FB_USED", "DEV_FB_USED"),
    "free": ("DEV_FB_FREE", "DEV_FB_FREE"),
    "reserved": ("DEV_FB_RESERVED", "DEV_FB_RESERVED"),
    "power": ("DEV_POWER_USAGE", "DEV_BOARD_POWER_WATTS"),
    "energy": ("DEV_TOTAL_ENERGY_CONSUMPTION", "DEV_TOTAL_ENERGY_CONSUMPTION"),
    "xid": ("DEV_XID_ERRORS", "DEV_XID_ERROR"),
    "gr": ("PROF_GR_ENGINE_ACTIVE", "PROF_GR_ENGINE_UTIL_RATIO"),
    "sm": ("PROF_SM_ACTIVE", "PROF_SM_UTIL_RATIO"),
    "tensor": ("PROF_PIPE_TENSOR_ACTIVE", "PROF_TENSOR_UTIL_RATIO"),
    "dram": ("PROF_DRAM_ACTIVE", "PROF_DRAM_UTIL_RATIO"),
    "rx": ("PROF_PCIE_RX_BYTES", "PROF_PCIE_RX_BYTES"),
    "tx": ("PROF_PCIE_TX_BYTES", "PROF_PCIE_TX_BYTES"),
    "nvlink": ("DEV_NVLINK_BANDWIDTH_TOTAL", "DEV_NVLINK_THROUGHPUT_TOTAL"),
    "clock": ("DEV_SM_CLOCK", "DEV_SM_CLOCK"),
    "temp": ("DEV_GPU_TEMP", "DEV_GPU_TEMP_CELSIUS"),
    "throttle": ("DEV_CLOCK_THROTTLE_REASONS", "DEV_CLOCKS_EVENT_REASONS"),
    "remapped": ("DEV_UNCORRECTABLE_REMAPPED_ROWS", "DEV_ROW_REMAP_UNCORRECTABLE_TOTAL"),
}
RICH = ("reserved", "clock", "temp", "throttle", "remapped")
PER_PROCESS = ("util", "used")
LOST_AFTER = 40
"""Seconds that the series of a GPU last after it has fallen off the bus."""
TEXTS = {
    13: "Graphics Engine Exception",
    31: "GPU memory page fault",
    43: "GPU stopped processing",
    45: "Preemptive cleanup, due to previous errors",
    48: "Double Bit ECC Error",
    79: "GPU has fallen off the bus",
}


@dataclass(eq=False)
class View:
    """A device as an exporter sees it."""

    track: Track
    exporter: Exporter
    spans: list[Span]
    power: list[float]
    xids: list[Xid]
    spoilt: Spoilt

    def own(self) -> dict[str, str]:
        """The labels of the device itself."""
        device, setup = self.track.device, self.exporter.setup
        card = device.card
        found = {"gpu": str(card.index), "uuid" if setup.is_old else "UUID": card.uuid}
        if not setup.is_old:
            found["pci_bus_id"] = card.bus
        found |= {
            "device": f"nvidia{card.index}",
            "modelName": card.model.product.replace("-", " "),
        }
        if device.profile:
            compute, memory = device.profile[:-2].split(".")
            is_less = card.model.name == "h100-80gb"  # the exporter's text is not the resource's
            text = f"{compute}.{int(memory) - 1}gb" if is_less else device.profile
            found |= {"GPU_I_PROFILE": text, "GPU_I_ID": str(device.instance)}
        found["hostname" if setup.is_new else "Hostname"] = card.node.name
        return found

    def target(self, target: Target) -> tuple[dict[str, str], dict[str, str]]:
        """Labels of the scrape, and those of the exporter's own pod, which may be hidden."""
        setup = self.exporter.setup
        key = "DCGM_FI_SYSTEM_DRIVER_VERSION" if setup.is_new else "DCGM_FI_DRIVER_VERSION"
        found = {key: target.driver, "instance": target.address}
        if self.exporter.honors == "annotation":
            return found | {"job": "kubernetes-pods", "kubernetes_pod_name": target.pod}, {}
        own = {"pod": target.pod, "namespace": "gpu-operator", "container": "nvidia-dcgm-exporter"}
        return found | {"job": "dcgm-exporter"}, own

    def workload(self, use: Use) -> dict[str, str]:
        """The labels of a pod."""
        pod, setup = use.pod, self.exporter.setup
        container = pod.asking()[0].name
        if setup.is_old:
            return {
                "pod_name": pod.name,
                "pod_namespace": pod.namespace,
                "container_name": container,
            }
        start = "exported_" if self.exporter.honors == "no" else ""
        found = {
            f"{start}pod": pod.name,
            f"{start}namespace": pod.namespace,
            f"{start}container": container,
        }
        if setup.has_dra:
            card = self.track.device.card
            found |= {
                "dra_claim_name": f"{pod.name}-gpu-{pod.uid[:5]}",
                "dra_claim_namespace": pod.namespace,
                "dra_device_name": f"gpu-{card.index}",
                "dra_driver_name": "gpu.nvidia.com",
                "dra_pool_name": card.node.name,
            }
        if setup.has_jobs and pod.owner and pod.owner.kind == "Job":
            found["hpc_job"] = str(crc32(pod.owner.uid.encode()) % 1_000_000)
        return found

    def users(self, number: int) -> list[Use]:
        """The pods that the kubelet names at a scrape."""
        reader, setup = self.exporter.reader, self.exporter.setup
        if setup.sharing == "none" or any(a <= number < b for a, b in self.exporter.unmapped):
            return []
        return [
            use
            for use in self.track.device.uses
            if reader.number(use.begin + setup.lag) <= number < reader.number(use.end)
        ]

    def labels(self) -> list[tuple[int, int, list[tuple[str, str]]]]:
        """From one scrape to another: the label sets, and which pod each speaks of."""
        reader, device = self.exporter.reader, self.track.device
        setup = self.exporter.setup
        cuts = {t for run in self.exporter.unmapped for t in run}
        for use in device.uses:
            cuts |= {reader.number(use.begin + setup.lag), reader.number(use.end)}
        away = [
            (reader.number(f.begin + LOST_AFTER), reader.number(f.end))
            for f in device.card.faults
            if f.is_lost
        ]
        cuts |= {t for run in away for t in run}
        cuts |= {reader.number(device.begin), reader.number(device.end)}
        life = (reader.number(device.begin), reader.number(device.end))
        own, found = self.own(), []
        for target in self.exporter.targets:
            if not target.is_up:
                continue
            inside = [c for c in cuts if target.begin < c < target.end]
            edges = sorted({target.begin, target.end, *inside})
            for begin, end in pairwise(edges):
                if not life[0] <= begin < life[1] or any(a <= begin < b for a, b in away):
                    continue
                scrape, exporter = self.target(target)
                sets = self._sets(own | scrape, exporter, self.users(begin))
                found.append((begin, end, sets))
        return found

    def _sets(
        self, base: dict[str, str], exporter: dict[str, str], users: list[Use]
    ) -> list[tuple[str, str]]:
        """One label set; or where a GPU is shared, what the exporter makes of it."""
        sharing = self.exporter.setup.sharing
        if not users or sharing == "process":
            old = {"pod_name": "", "pod_namespace": "", "container_name": ""}
            bare = base | exporter | (old if self.exporter.setup.is_old else {})
            sets = [(labelled(bare), "")]
            if not users:
                return sets
        else:
            sets = []
        if sharing == "one":
            users = [max(users, key=lambda use: (use.begin, use.pod.uid))]
        for number, use in enumerate(users):
            more = self.workload(use)
            if sharing in ("every", "process"):
                more["vgpu"] = str(number)
            if sharing == "process":
                more["pod_uid"] = use.pod.uid
            sets.append((labelled(base | exporter | more), use.pod.uid))
        return sets

    def values(self, key: str) -> list[str]:
        """One field at each scrape."""
        count, spans = self.exporter.reader.count, self.spans
        device = self.track.device
        match key:
            case "util":
                return readings.told(spans, count, "util", 0, 0.02)
            case "gr" | "sm" | "tensor" | "dram":
                return readings.told(spans, count, key, 6 if key == "gr" else 4, 0.04)
            case "rx" | "tx":
                return readings.told(spans, count, key, 0, 0.06)
            case "nvlink":  # units of 1.024e6 bytes a second
                scaled = [s._replace(phase=_scaled(s.phase)) for s in spans]
                return readings.told(scaled, count, "nvlink", 0, 0.06)
            case "power":
                return [f"{watt:.3f}" for watt in self.power]
            case "energy":
                begin = 10**9 * (40 + device.card.index)
                return readings.millijoules(self.power, begin, self.exporter.reader.step)[:count]
            case "used" | "free" | "reserved":
                reserved = 600 if device.card.model.memory_mib > 40_000 else 330
                used = [4 + s.memory for s in spans]
                if key == "free":
                    used = [device.memory_mib - reserved - u for u in used]
                if key == "reserved":
                    used = [reserved] * len(spans)
                return readings.constant(spans, count, [f"{u:.0f}" for u in used])
            case "clock":
                fast = phases.CLOCKS[device.card.model.name]
                clocks = [fast if s.phase.has_context else phases.REST_CLOCK for s in spans]
                return readings.constant(spans, count, [str(c) for c in clocks])
            case "temp":
                limit = phases.DRAWS[device.card.model.name].limit
                return [f"{28 + 45 * watt / limit:.0f}" for watt in self.power]
            case "throttle":
                bits = ["4" if s.phase.power > 0.8 else "0" for s in spans]
                bits = [b if s.phase.has_context else "1" for b, s in zip(bits, spans, strict=True)]
                return readings.constant(spans, count, bits)
            case _:
                return ["0"] * count

    def name(self, key: str) -> str:
        """The metric's name under this exporter."""
        name = f"DCGM_FI_{NAMES[key][self.exporter.setup.is_new]}"
        return name.lower() if self.exporter.setup.is_old else name

    def has(self, key: str) -> bool:
        """Whether the exporter tells of a field."""
        setup, device = self.exporter.setup, self.track.device
        if key in ("gr", "tensor", "dram", "rx", "tx", "sm"):
            return setup.has_prof and (key != "sm" or setup.has_sm)
        if key == "util":
            return not device.profile
        if key == "nvlink":
            return device.card.model.name in phases.HAS_NVLINK and not device.profile
        if key in ("free", "used"):
            return device.card.model.name != "a30-24gb"  # MIG there tells no memory
        return key not in RICH or setup.is_rich

    def series(self, key: str, labels: list[tuple[int, int, list[tuple[str, str]]]]):
        """All series of a field."""
        values = self.spoilt.over(key, self.values(key))
        stamps = self.exporter.reader.stamps
        for begin, end, sets in labels:
            first = next((uid for _, uid in sets if uid), "")
            for text, uid in sets:
                told = values[begin:end]
                if uid and key in PER_PROCESS and self.exporter.setup.sharing == "process":
                    told = told if uid == first else ["0"] * len(told)
                elif not uid and len(sets) > 1 and key not in PER_PROCESS:
                    continue  # replaced by its copies
                yield text, told, stamps[begin:end]

    def rejected(self) -> Iterable[tuple[str, str, str, str]]:
        """What a reader must refuse: the metric, the end of its line, the value, and why."""
        labels = self.labels()
        for bad in self.spoilt.bad:
            if bad.reason == "none" or not self.has(bad.key):
                continue
            first, last = (self.exporter.reader.stamps[n] for n in (bad.begin, bad.end - 1))
            for _, values, stamps in self.series(bad.key, labels):
                for value, stamp in zip(values, stamps, strict=True):
                    if value == bad.value and first <= stamp <= last:
                        yield self.name(bad.key), stamp, value, bad.reason

    def errors(self, labels: list[tuple[int, int, list[tuple[str, str]]]]) -> Iterable[Series]:
        """The last error, which stays until the exporter is another one."""
        reader = self.exporter.reader
        for begin, end, sets in labels:
            target = next(t for t in self.exporter.targets if t.begin <= begin < t.end)
            told = [(reader.number(x.at), x.code) for x in self.xids]
            known = [code for at, code in told if target.begin <= at <= begin]
            last = known[-1] if known else 0
            edges = [(begin, last), *((at, code) for at, code in told if begin < at < end)]
            for (since, code), (until, _) in zip(edges, [*edges[1:], (end, 0)], strict=True):
                more = f',err_code="{code}",err_msg="{TEXTS[code]}"' if code else ""
                for text, uid in sets:
                    if (uid or len(sets) == 1) and since < until:
                        stamps = reader.stamps[since:until]
                        yield text + more, [str(code)] * len(stamps), stamps

    def windowed(self, labels: list[tuple[int, int, list[tuple[str, str]]]]) -> Iterable[Series]:
        """Errors of the last five minutes: a count that falls again."""
        reader = self.exporter.reader
        scrapes = 300 // reader.step
        for begin, end, sets in labels:
            for code in sorted({x.code for x in self.xids}):
                at = [reader.number(x.at) for x in self.xids if x.code == code]
                values = [sum(n - scrapes < a <= n for a in at) for n in range(begin, end)]
                if any(values):
                    more = f',window_size_in_ms="300000",xid="{code}"'
                    texts = [str(v) if v else "" for v in values]
                    yield sets[-1][0] + more, texts, reader.stamps[begin:end]


def _scaled(phase: phases.Phase) -> phases.Phase:
    return phase._replace(nvlink=phase.nvlink / 1.024e6)


def tell(page: Page, view: View, fields: Collection[str] | None = None) -> None:
    """Put all that an exporter tells of one device on the page, or some of its fields."""
    setup = view.exporter.setup
    labels = view.labels()
    for key in filter(view.has, NAMES if fields is None else fields):
        if key == "xid":
            page.add(view.name(key), lambda: view.errors(labels))
        else:
            page.add(view.name(key), lambda key=key: view.series(key, labels))
    if setup.is_rich and view.xids and fields is None:
        page.add("DCGM_EXP_XID_ERRORS_COUNT", lambda: view.windowed(labels))
