"""Raw rows of claims and slices in a few words, for tests of what the queries make of them."""

from typing import Any

from models import raw_dra
from pipelines.laws import LAWS
from tests.sql_case import MIDNIGHT, Case, Row

DRIVER = "gpu.nvidia.com"
ZERO = int(MIDNIGHT.timestamp())


def gpu(number: int = 0, **told: Any) -> Row:
    """A whole GPU of node n as its slice tells it, unless told otherwise."""
    return {
        "device_name": f"gpu-{number}", "is_gpu": True, "type_name": "gpu",
        "gpu_uuid": f"GPU-{number}", "device_uuid": f"GPU-{number}", "gpu_model_name": "t4",
        "profile_name": None, "memory_mib": 16000, "share_micro_gpu": 1_000_000,
        "node_name": None, "is_tainted": False, **told,
    }  # fmt: skip


def mig(name: str, profile: str, share: int, parent: int = 0) -> Row:
    """A MIG device."""
    return gpu(parent, device_name=name, type_name="mig", device_uuid=f"MIG-{name}",
               profile_name=profile, share_micro_gpu=share)  # fmt: skip


def given(name: str = "gpu-0", **told: Any) -> Row:
    """A device allocated to a claim."""
    return {
        "request_name": "gpu", "driver_name": DRIVER, "pool_name": "n", "device_name": name,
        "is_admin": False, "is_gpu": True, "share_id": None, "consumed_mib": None, **told,
    }  # fmt: skip


def asks(count: int = 1, **told: Any) -> Row:
    """A request of a claim."""
    return {"request_name": "gpu", "class_name": DRIVER, "is_gpu": True, "device_count": count,
            "share_micro_gpu": None, **told}  # fmt: skip


class DraCase(Case):
    """A cluster whose node n has its GPUs by ResourceSlices alone."""

    def bare_node(self, name: str = "n", seen: float = 0, **told: Any) -> None:
        """A version of a node that has no extended resource."""
        self.node(name, 0, seen, resources=[], is_ever_ready=False, **told)

    def slice(self, devices: list[Row], seen: float = 0, **told: Any) -> None:
        """A version of the only slice of the pool of node n, listed when seen at 0."""
        self.add(raw_dra.SLICE_VERSIONS, **{
            "observed_at": seen, "change_name": "MODIFIED" if seen else "LISTED",
            "slice_uid": "s", "driver_name": DRIVER, "pool_name": "n", "node_name": "n",
            "generation_number": 1, "slice_count": 1, "devices": devices, **told,
        })  # fmt: skip

    def claim(
        self, seen: float, devices: list[Row] | None = None, pods: str = "", **told: Any
    ) -> None:
        """A version of a claim; `pods` are those it is reserved for, one letter each."""
        uses = [{"kind_name": "pods", "object_name": p, "object_uid": p} for p in pods]
        self.add(raw_dra.CLAIM_VERSIONS, **{
            "observed_at": seen, "change_name": "MODIFIED", "claim_uid": "c", "claim_name": "c",
            "requests": [asks()], "devices": devices or [], "reserved_for": uses, **told,
        })  # fmt: skip

    def claiming(self, name: str, bound: float | None, claims: str = "c", **told: Any) -> None:
        """A pod that asks by claims alone, one letter each; bound then, seen when created."""
        named = [{"claim_name": each, "resource_name": None} for each in claims]
        where = None if bound is None else "n"
        seen = told.pop("seen", bound or 0)
        self.pod(name, where, seen, **{"requests": [], "claims": named, **told})

    def held(self) -> list[tuple[str, str, int, int, int]]:
        """Pod, device, share in micro-GPU, and the seconds from and to which it has that."""
        return self.ask(
            "select h.pod_uid, h.device_uuid, s.share_micro_gpu, "
            f"epoch(s.begin_at)::bigint - {ZERO}, "
            f"epoch(s.end_at)::bigint - {ZERO} "
            "from core.hold_shares as s inner join core.holds as h on s.hold_id = h.hold_id "
            "order by 1, 4, 2, 3"
        )

    def asked(self) -> dict[str, int]:
        """Pod -> the share that it asks for."""
        return dict(self.ask("select pod_uid, asked_micro_gpu from core.pods"))

    def installed(self) -> tuple[int, str]:
        """What is installed on node n, and what says so."""
        [row] = self.ask("select installed_count, count_source_name from core.nodes")
        return row

    def broken(self) -> list[str]:
        """The laws that do not hold."""
        return [
            law.name for law in LAWS
            if self.ask(law.breaches.replace("$zone", "'UTC'")) != [(0,)]
        ]  # fmt: skip
