"""What a GPU and its process do in a phase of their life, in numbers; and what each model draws.

Which phases follow one another is in `scripts`; how an exporter reads them in `readings`.
"""

from typing import NamedTuple

KB, MB, GB = 1e3, 1e6, 1e9


class Phase(NamedTuple):
    """How busy one GPU is, and its process on the host."""

    name: str
    util: float = 0.0  # percent of time in which any kernel runs
    gr: float = 0.0  # the rest in 0..1
    sm: float = 0.0
    tensor: float = 0.0
    dram: float = 0.0
    rx: float = 0.0  # PCIe, bytes a second, from the host
    tx: float = 0.0
    nvlink: float = 0.0  # bytes a second, both ways
    power: float = 0.0  # of the way from rest with a context to the limit
    has_context: bool = True
    cpu: float = 0.05  # cores
    reads: float = 0.0  # bytes a second from files
    network: float = 2 * KB
    throttled: float = 0.0  # of the periods in which the CPU limit applies

    @property
    def is_active(self) -> bool:
        """It works, by the rule that counts SM activity."""
        return self.sm > 0.01 and not self.is_stalled

    @property
    def is_stalled(self) -> bool:
        """Kernels run, and nothing comes of it."""
        return self.util >= 95 and self.tensor <= 0.02 and self.dram <= 0.02 and self.power < 0.05


EMPTY = Phase("empty", has_context=False, cpu=0.02)
IMPORTS = Phase("imports", has_context=False, cpu=2.4, reads=40 * MB)
WEIGHTS = Phase("weights", sm=0.002, rx=2.2 * GB, cpu=1.8, reads=700 * MB, network=30 * MB)
HELD = Phase("held")
PEERS = Phase("peers", cpu=0.3, network=4 * KB)
THROTTLED = Phase("throttled", sm=0.002, cpu=7.9, throttled=0.72, reads=6 * MB)
READS = Phase("reads", sm=0.002, rx=0.03 * GB, cpu=1.9, reads=900 * MB, network=80 * MB)
NO_REQUESTS = Phase("no_requests", cpu=0.12, network=1 * KB)
TRAIN = Phase(
    *("train", 98, 0.97, 0.88, 0.42, 0.55, 1.5 * GB, 0.6 * GB, 180 * GB, 0.82),
    cpu=5.5,
    reads=60 * MB,
    network=2 * MB,
)
TRAIN_ALONE = TRAIN._replace(name="train_alone", nvlink=0.0, sm=0.84)
TRAIN_PCIE = TRAIN._replace(
    name="train_pcie", nvlink=0.0, rx=11 * GB, tx=11 * GB, sm=0.52, tensor=0.21, power=0.5
)
CHECKPOINT = Phase("checkpoint", sm=0.002, tx=3 * GB, cpu=2.2, network=300 * MB)
EVALUATE = Phase("evaluate", 85, 0.82, 0.5, 0.18, 0.4, 0.8 * GB, 0.2 * GB, 20 * GB, 0.45, cpu=4.0)
BATCH = Phase(
    *("batch", 76, 0.71, 0.43, 0.06, 0.33, 0.7 * GB, 0.3 * GB, 0.0, 0.42),
    cpu=3.0,
    reads=25 * MB,
)
CELL = Phase("cell", 64, 0.55, 0.31, 0.07, 0.22, 0.2 * GB, 0.1 * GB, 0.0, 0.3, cpu=1.4)
BEAT = Phase("beat", 60, 0.7, 0.6, 0.0, 0.1, 1 * MB, 1 * MB, 0.0, 0.2, cpu=0.2)
"""A few seconds of it: enough for one sample over 1 %."""
SPIN = Phase("spin", 100, 0.99, 0.007, 0.0, 0.002, 0.2 * MB, 0.2 * MB, 0.0, 0.012, cpu=1.0)
COLLECTIVE = Phase("collective", 100, 1.0, 0.15, 0.0, 0.012, 0.3 * MB, 0.3 * MB, 0.0, 0.03, cpu=1.1)
"""A lone collective kernel that waits for a peer who does not come: it keeps 15 % of the SMs."""
ROGUE = Phase("rogue", 99, 0.98, 0.91, 0.0, 0.62, 0.1 * GB, 0.05 * GB, 0.0, 0.7)
"""Someone's own process on the node, outside Kubernetes."""
SERVE = tuple(
    Phase(
        f"serve_{n}",
        util=22 + 14 * n,
        gr=0.2 + 0.14 * n,
        sm=0.1 + 0.11 * n,
        tensor=0.03 + 0.05 * n,
        dram=0.16 + 0.12 * n,
        rx=(0.1 + 0.1 * n) * GB,
        tx=(0.05 + 0.05 * n) * GB,
        power=0.14 + 0.12 * n,
        cpu=0.8 + 0.5 * n,
        network=(0.3 + 0.9 * n) * MB,
    )
    for n in range(6)
)
"""A server's GPU, from a few requests to all that it can take."""


class Draw(NamedTuple):
    """Watts of a model: at rest without and with a context, and its limit."""

    bare: float
    context: float
    limit: float


DRAWS = {
    "h100-80gb": Draw(70, 121, 700),
    "h200-141gb": Draw(76, 128, 700),
    "a100-80gb": Draw(60, 88, 400),
    "a100-40gb": Draw(52, 78, 400),
    "a30-24gb": Draw(28, 52, 165),
    "l40s": Draw(34, 86, 350),
    "v100-32gb": Draw(41, 58, 300),
    "t4": Draw(10, 27, 70),
}
HAS_NVLINK = ("h100-80gb", "h200-141gb", "a100-80gb", "a100-40gb", "v100-32gb")
CLOCKS = {
    "h100-80gb": 1980,
    "h200-141gb": 1980,
    "a100-80gb": 1410,
    "a100-40gb": 1410,
    "a30-24gb": 1440,
    "l40s": 2520,
    "v100-32gb": 1530,
    "t4": 1590,
}
"""SM clock in MHz once a process has a context, busy or not."""
REST_CLOCK = 345
