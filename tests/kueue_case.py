"""Owners and Kueue Workloads told in a few words, for SQL tests of attempts that wait for quota."""

from models import raw
from tests.sql_case import GPU, Case


def owner(case: Case, kind: str, name: str, above: str | None = None, **told) -> None:
    """A version of an object that owns pods; `above` is `Kind/name` of what controls it."""
    above_kind, above_name = above.split("/") if above else (None, None)
    case.add(raw.OWNER_VERSIONS, **{
        "change_name": "ADDED", "object_uid": name, "kind_name": kind, "namespace_name": "x",
        "object_name": name, "is_creation_seen": True, "labels_json": "{}",
        "owner_kind_name": above_kind, "owner_name": above_name, "owner_uid": above_name,
        "workload_kind_name": above_kind or kind, "workload_name": above_name or name,
        "workload_key_uid": above_name or name, "workload_class": "training", **told,
    })  # fmt: skip


def owners(*chain: str) -> list[dict]:
    """A pod's owners, each as `Kind/name`, the name its uid too."""
    parts = [each.split("/") for each in chain]
    return [{"kind_name": k, "object_name": n, "object_uid": n} for k, n in parts]


class Queued:
    """A Kueue Workload of a Job, its versions told one after the other; conditions stay."""

    def __init__(self, case: Case, uid: str = "q", job: str = "j", pods: int = 1, **told):
        asked = [{"resource_name": GPU, "request_count": pods}]
        self.case = case
        self.told = {
            "workload_uid": uid, "object_name": f"job-{uid}", "namespace_name": "x",
            "owner_kind_name": "Job", "owner_name": job, "owner_uid": job,
            "owners": owners(f"Job/{job}"), "workload_kind_name": "Job", "workload_name": job,
            "workload_key_uid": job, "workload_class": "training", "queue_name": "main",
            "is_active": True, "pod_sets_json": "[]", "pod_count": pods, "requests": asked,
            "pod_requests": [{"resource_name": GPU, "request_count": 1}], "labels_json": "{}",
            "checks_json": "[]", **told,
        }  # fmt: skip
        self.at(told.get("created_at", 0), change_name="ADDED")

    def at(self, seen: float, **news) -> "Queued":
        """Observed at that second, with what is new; a condition's time is then, unless told."""
        change = {"change_name": news.pop("change_name", "MODIFIED")}
        for name in list(news):
            if name.startswith("is_") and name != "is_active":
                news.setdefault(f"{name.removeprefix('is_')}_at", seen)
        self.told |= news
        self.case.add(raw.WORKLOAD_VERSIONS, observed_at=seen, **change, **self.told)
        return self

    def quota(self, seen: float, **told) -> "Queued":
        """Quota reserved, and admitted at once; what Evicted said is over."""
        news = {"is_quota_reserved": True, "is_admitted": True, "cluster_queue_name": "cq"}
        if self.told.get("is_evicted"):
            news |= {"is_evicted": False, "eviction_reason_name": None}
        return self.at(seen, **news, **told)

    def evicted(self, seen: float, reason: str = "Preempted", **told) -> "Queued":
        """Evicted, its quota not given back yet."""
        return self.at(seen, is_evicted=True, eviction_reason_name=reason, **told)

    def released(self, seen: float, **told) -> "Queued":
        """Its quota given back."""
        return self.at(
            seen, is_quota_reserved=False, is_admitted=False, cluster_queue_name=None, **told
        )

    def finished(self, seen: float, reason: str = "Succeeded") -> "Queued":
        """Finished; QuotaReserved stays True."""
        return self.at(seen, is_finished=True, finish_reason_name=reason)


def job_pod(case: Case, name: str, node: str | None, created: float, seen: float, **told) -> None:
    """A version of a pod of the Job `j`."""
    case.pod(name, node, seen=seen, created_at=created, **{
        "namespace_name": "x", "workload_key_uid": "j", "workload_kind_name": "Job",
        "workload_name": "j", "owners": owners("Job/j"), **told,
    })  # fmt: skip
