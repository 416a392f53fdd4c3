"""The names that kube-state-metrics writes with underscores, back as Kubernetes has them.

A name that no rule, no key of ours and no known vendor explains stays as it was written: what stood
in place of an underscore cannot be known. Which series carry them belongs to `kube_state_facts`.
"""

import re
from collections.abc import Iterable

from collectors import hami
from collectors.attribution import GROUP_KEYS, LWS
from collectors.nodes import PRODUCT_KEYS
from collectors.objects import MODEL_KEYS
from collectors.requests import AMD, BESIDE, GPU, PARTS, SHARED
from collectors.source import Settings

RESOURCES = (
    *(GPU, SHARED, AMD, *PARTS, *sorted(BESIDE)),
    *("amd.com/gpu_spx_nps1", "gpu.intel.com/i915", "gpu.intel.com/xe", "habana.ai/gaudi"),
    *("aws.amazon.com/neuron", "aws.amazon.com/neuroncore", "aws.amazon.com/neurondevice"),
    *("google.com/tpu", "cloud-tpus.google.com/v3", "huawei.com/Ascend310", "huawei.com/Ascend910"),
    *("cambricon.com/mlu", "cambricon.com/vmlu", "hygon.com/dcu", "hygon.com/dcunum"),
    *("iluvatar.ai/vgpu", "metax-tech.com/gpu", "mthreads.com/vgpu", "aliyun.com/gpu-mem"),
    *("tencent.com/vcuda-core", "volcano.sh/vgpu-number", "volcano.sh/vgpu-memory"),
)
"""Extended resources of accelerators; `accelerators` of the configuration adds to them."""
LABELS = (
    *(*GROUP_KEYS, *MODEL_KEYS, *PRODUCT_KEYS),
    *(f"{LWS}/{end}" for end in ("name", "group-index", "size", "worker-index")),
    *("app.kubernetes.io/name", "app.kubernetes.io/instance", "app.kubernetes.io/component"),
    *("app.kubernetes.io/part-of", "app.kubernetes.io/managed-by", "app.kubernetes.io/version"),
    *("batch.kubernetes.io/job-name", "batch.kubernetes.io/controller-uid"),
    *("pod-template-hash", "rollouts-pod-template-hash", "notebook-name", "job-name"),
    *("jobset.sigs.k8s.io/jobset-name", "jobset.sigs.k8s.io/jobset-uid"),
    "trainer.kubeflow.org/trainjob-ancestor-step",
    *("training.kubeflow.org/job-name", "training.kubeflow.org/operator-name"),
    *("ray.io/originated-from-cr-name", "ray.io/originated-from-crd", "ray.io/cluster"),
    *("sparkoperator.k8s.io/app-name", "workflows.argoproj.io/workflow"),
    *("serving.kserve.io/inferenceservice", "serving.knative.dev/service"),
    *("scheduling.x-k8s.io/pod-group", "volcano.sh/job-name", "volcano.sh/job-namespace"),
    *(f"kueue.x-k8s.io/{end}" for end in ("cluster-queue-name", "queue-name", "local-queue-name")),
    *(f"kueue.x-k8s.io/{end}" for end in ("pod-group-name", "pod-group-total-count")),
    *("volcano.sh/queue-name", "scheduling.volcano.sh/queue-name"),
    *(f"nvidia.com/gpu.{end}" for end in ("count", "memory", "replicas", "sharing-strategy")),
    *("nvidia.com/gpu.shared.replicas", "nvidia.com/gpu.family", "nvidia.com/gpu.machine"),
    *("nvidia.com/mig.strategy", "nvidia.com/mig.config", "nvidia.com/mig.config.state"),
    *("nvidia.com/mig.capable", "nvidia.com/gpu-driver-upgrade-state"),
    *("cloud.google.com/gke-spot", "cloud.google.com/gke-preemptible"),
    *("kubernetes.io/hostname", "node.kubernetes.io/instance-type"),
    *("topology.kubernetes.io/zone", "topology.kubernetes.io/region"),
    *("kubernetes.io/metadata.name", hami.REGISTER, hami.ALLOCATED, hami.PHASE),
)
"""Keys of labels and annotations that our own rules read, and common ones."""
MIG = re.compile(r"nvidia_com_mig_((?:\dc_)?\d+g)_(\d+gb)((?:_(?:me|gfx|all))*)(_shared)?(_.*)?")
DOMAIN = re.compile(r"(.+?_(?:com|io|ai|org|dev|sh|net|cn|tech_com))_(.+)")
_CAPITAL = re.compile(r"([a-z0-9])([A-Z])")
_OTHER = re.compile(r"[^a-zA-Z0-9_]")


def written(name: str) -> str:
    """A resource as kube-state-metrics writes it."""
    return _OTHER.sub("_", name)


def snaked(key: str) -> str:
    """A key of labels as it writes it, without the prefix."""
    return _CAPITAL.sub(r"\1_\2", written(key)).lower()


class Names:
    """The way back from the written names, for one configuration."""

    def __init__(self, settings: Settings):
        ours = (*RESOURCES, *settings.accelerators)
        self._resources = {written(name): name for name in ours}
        keys: Iterable[str] = (
            *LABELS,
            *(key for rule in settings.workload_classes for key in rule.pod_label or {}),
            *(*settings.user_keys, *settings.account_keys, *settings.submitted_keys),
            *settings.capacity_type_keys,
            *settings.label_keys,
        )
        # What the configuration names comes last, so that of two with one spelling it wins.
        self._keys = {snaked(key): key for key in keys}

    def resource(self, name: str) -> str:
        """A resource's own name."""
        if name not in self._resources:
            self._resources[name] = self._guessed(name)
        return self._resources[name]

    def _guessed(self, name: str) -> str:
        if (match := MIG.fullmatch(name)) and not match[5]:
            profile = f"{match[1].replace('_', '.')}.{match[2]}{match[3].replace('_', '.')}"
            return f"nvidia.com/mig-{profile}" + (".shared" if match[4] else "")
        match = DOMAIN.fullmatch(name)
        return f"{match[1].replace('_', '.')}/{match[2]}" if match else name

    def key(self, name: str) -> str:
        """The key of a label or an annotation, given as written but for the prefix."""
        found = self._keys.get(name.lower())
        if found is None and (match := MIG.fullmatch(name)) and match[5]:
            profile = f"{match[1].replace('_', '.')}.{match[2]}{match[3].replace('_', '.')}"
            shared = ".shared" if match[4] else ""
            found = f"nvidia.com/mig-{profile}{shared}.{match[5][1:].replace('_', '.')}"
        return name if found is None else found

    def labels(self, told: dict[str, str | None]) -> dict[str, str]:
        """Labels or annotations, by their own keys, in a settled order."""
        named = ((self.key(name), value) for name, value in told.items() if value is not None)
        return dict(sorted(named))
