"""Which class of work a top-level object usually is, and which kinds are services.

Which object is a pod's top-level one belongs to `collectors/attribution.py`.
"""

CLASS_OF_KIND = {
    "VolcanoJob": "training",
    "JobSet": "training",
    "TrainJob": "training",
    "PyTorchJob": "training",
    "TFJob": "training",
    "XGBoostJob": "training",
    "PaddleJob": "training",
    "JAXJob": "training",
    "MXJob": "training",
    "MPIJob": "training",
    "RayJob": "training",
    "Job": "batch",
    "CronJob": "batch",
    "Workflow": "batch",
    "PodGroup": "batch",
    "SparkApplication": "batch",
    "Deployment": "inference",
    "ReplicaSet": "inference",
    "Rollout": "inference",
    "LeaderWorkerSet": "inference",
    "InferenceService": "inference",
    "LLMInferenceService": "inference",
    "KnativeService": "inference",
    "RayService": "inference",
    "StatefulSet": "interactive",
    "Notebook": "interactive",
    "RayCluster": "interactive",
    "DaemonSet": "system",
}
"""Kind -> class; a kind that is not here is 'unknown'; `workload_classes` overrides."""

SERVICES = frozenset(
    (
        "Deployment",
        "ReplicaSet",
        "Rollout",
        "StatefulSet",
        "DaemonSet",
        "LeaderWorkerSet",
        "InferenceService",
        "LLMInferenceService",
        "KnativeService",
    )
)
"""Kinds of which each replica is an attempt of its own."""


def class_of(kind: str) -> str:
    """The class that a kind usually is."""
    return CLASS_OF_KIND.get(kind, "unknown")
