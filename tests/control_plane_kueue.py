"""Kueue, JobSet and the Kubeflow Trainer beside a control plane of `control_plane`: real ones.

They are set up as their projects ship them, but for certificates and addresses: there is no
cluster network, so the API server calls their webhooks on loopback. What is queued is made here
too; what a test expects of it belongs to that test.
"""

import base64
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import requests
import yaml

from tests.control_plane import ControlPlane, free_ports
from tests.control_plane_api import GPU, Api, Object, Refused
from tests.control_plane_build import QUEUEING
from tests.prometheus_server import until

KUEUE, JOBSET, TRAINER = "kueue", "jobset", "trainer-controller-manager"
SERVED = {
    "kueue.x-k8s.io": ("clusterqueues", "cohorts", "localqueues", "resourceflavors", "workloads"),
    "batch": ("jobs",),
    "jobset.x-k8s.io": ("jobsets",),
    "trainer.kubeflow.org": ("trainjobs", "trainingruntimes", "clustertrainingruntimes"),
}
"""What their webhooks are asked about; Kueue's others stand before kinds that are not here."""
QUICK = {"qps": 1000, "burst": 1000}
READY_SECONDS = 90
"""A workload whose pods do not run so long after it was admitted is evicted, and queued again."""
GRACE_SECONDS = 2
PRIORITIES = {"low": 100, "middle": 500, "high": 1000}
QUEUE_NAMES = ("research", "product", "batch")


class Queueing:
    """The three controllers, running until the control plane ends."""

    def __init__(self, plane: ControlPlane, binaries: dict[str, Path]):
        self.plane, self.binaries, self.api = plane, binaries, plane.api()
        self.folder = plane.folder / "queueing"
        self.folder.mkdir()
        ports = free_ports(6)
        self._health: dict[str, int] = dict(zip((KUEUE, JOBSET, TRAINER), ports[:3], strict=True))
        self._webhook: dict[str, int] = dict(zip((KUEUE, JOBSET, TRAINER), ports[3:], strict=True))

    def start(self) -> None:
        """Makes their kinds, runs them, and puts their webhooks before the API server."""
        self._certificate()
        self._kinds()
        self.plane.run(JOBSET, self._words(JOBSET, self._jobset()), TMPDIR=str(self.folder))
        self.plane.run(TRAINER, self._words(TRAINER, self._trainer()), TMPDIR=str(self.folder))
        # Kueue reads the certificate of its metrics from under /etc, whether it serves any or not;
        # it is shown an /etc of its own.
        shown = 'mount --bind "$0" /etc && exec "$@"'
        own = ["unshare", "--mount", "--map-root-user", "sh", "-c", shown, str(self.folder / "etc")]
        gates = "--feature-gates=VisibilityOnDemand=false"
        self.plane.run(KUEUE, [*own, *self._words(KUEUE, self._kueue()), gates])
        for name in (JOBSET, TRAINER, KUEUE):
            until(lambda name=name: self._is_ready(name), seconds=120)
        for component, name in zip(QUEUEING, (KUEUE, JOBSET, TRAINER), strict=True):
            self._register(component.place / "webhook" / "manifests.yaml", name)

    def _certificate(self) -> None:
        """One for all of them, in each place where one of them looks for it."""
        certificate = self.folder / "k8s-webhook-server" / "serving-certs"
        certificate.mkdir(parents=True)
        words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
        out = ["-keyout", certificate / "tls.key", "-out", certificate / "tls.crt"]
        names = ["-subj", "/CN=webhooks", "-addext", "subjectAltName=IP:127.0.0.1"]
        subprocess.run([*words, *out, *names], check=True, capture_output=True)
        shutil.copytree(certificate, self.folder / "etc" / "kueue" / "metrics" / "certs")

    def _kinds(self) -> None:
        named = []
        for component in QUEUEING:
            bases = component.place / ("crds" if component.name == "trainer" else "bases")
            for path in sorted(bases.glob("*.yaml")):
                for each in yaml.safe_load_all(path.read_text()):
                    if each and each["kind"] == "CustomResourceDefinition":
                        self.api.create(each)
                        named.append(each["metadata"]["name"])
        root = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"
        for name in named:
            until(lambda name=name: _is_true(self.api.get(root + name), "Established"))

    def _words(self, name: str, config: Object) -> list[str]:
        path = self.folder / f"{name}.yaml"
        path.write_text(json.dumps(config))
        kubeconfig = self.plane.kubeconfig()
        return [str(self.binaries[name]), f"--config={path}", f"--kubeconfig={kubeconfig}"]

    def _kueue(self) -> Object:
        return {
            "apiVersion": "config.kueue.x-k8s.io/v1beta2",
            "kind": "Configuration",
            **self._common(KUEUE),
            "webhook": {
                "port": self._webhook[KUEUE],
                "host": "127.0.0.1",
                "certDir": str(self.folder / "k8s-webhook-server" / "serving-certs"),
            },
            "internalCertManagement": {"enable": False},
            "integrations": {
                "frameworks": [
                    "batch/job",
                    "jobset.x-k8s.io/jobset",
                    "trainer.kubeflow.org/trainjob",
                ]
            },
            "waitForPodsReady": {
                "timeout": f"{READY_SECONDS}s",
                "requeuingStrategy": {"backoffBaseSeconds": 5, "backoffLimitCount": 1},
            },
        }

    def _jobset(self) -> Object:
        return {
            "apiVersion": "config.jobset.x-k8s.io/v1alpha1",
            "kind": "Configuration",
            **self._common(JOBSET),
            "webhook": {"port": self._webhook[JOBSET], "host": "127.0.0.1"},
            "internalCertManagement": {"enable": False},
        }

    def _trainer(self) -> Object:
        return {
            "apiVersion": "config.trainer.kubeflow.org/v1alpha1",
            "kind": "Configuration",
            **self._common(TRAINER),
            "webhook": {"port": self._webhook[TRAINER], "host": "127.0.0.1"},
            "certManagement": {"enable": False},
        }

    def _common(self, name: str) -> Object:
        return {
            "health": {"healthProbeBindAddress": f"127.0.0.1:{self._health[name]}"},
            "metrics": {"bindAddress": "0"},
            "leaderElection": {"leaderElect": False},
            "clientConnection": QUICK,
        }

    def _is_ready(self, name: str) -> bool:
        ended = self.plane.processes[name].poll() is not None
        assert not ended, f"{name} ended:\n{self.plane.log(name)[-3000:]}"
        try:
            answer = requests.get(f"http://127.0.0.1:{self._health[name]}/readyz", timeout=5)
        except requests.RequestException:
            return False
        return answer.ok

    def _register(self, manifest: Path, name: str) -> None:
        certificate = self.folder / "k8s-webhook-server" / "serving-certs" / "tls.crt"
        for each in yaml.safe_load_all(manifest.read_text()):
            kept = [hook for hook in each["webhooks"] if _is_served(hook)]
            for hook in kept:
                path = hook["clientConfig"].pop("service")["path"]
                hook["clientConfig"] = {
                    "url": f"https://127.0.0.1:{self._webhook[name]}{path}",
                    "caBundle": base64.b64encode(certificate.read_bytes()).decode(),
                }
            meta = {"name": f"{name}-{each['metadata']['name']}"}
            self.api.create({**each, "metadata": meta, "webhooks": kept})


def _is_served(hook: Object) -> bool:
    rules = [(g, r) for rule in hook["rules"] for g in rule["apiGroups"] for r in rule["resources"]]
    return all(resource.split("/")[0] in SERVED.get(group, ()) for group, resource in rules)


def _is_true(thing: Object, condition: str) -> bool:
    found = thing.get("status", {}).get("conditions", ())
    return any(each["type"] == condition and each["status"] == "True" for each in found)


def queues(api: Api, space: str, gpus: dict[str, int]) -> None:
    """ClusterQueues of one cohort that preempt and borrow, each with a LocalQueue of its name."""
    flavor = {"nodeLabels": {"kubernetes.io/os": "linux"}}
    made = [
        _kueue("ResourceFlavor", "h100", spec=flavor),
        *(
            _kueue("WorkloadPriorityClass", n, value=v, description="")
            for n, v in PRIORITIES.items()
        ),
    ]
    for name, count in gpus.items():
        # What a pod asks for and no quota covers keeps its workload waiting for ever.
        quotas = {"cpu": "100k", "memory": "1000Ti", GPU: str(count)}
        resources = [{"name": each, "nominalQuota": amount} for each, amount in quotas.items()]
        group = {
            "coveredResources": list(quotas),
            "flavors": [{"name": "h100", "resources": resources}],
        }
        preempts = {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"}
        spec = {
            "cohortName": "all",
            "namespaceSelector": {},
            "resourceGroups": [group],
            "preemption": preempts,
        }
        made += [
            _kueue("ClusterQueue", name, spec=spec),
            _kueue("LocalQueue", name, space, spec={"clusterQueue": name}),
        ]
    for each in made:
        until(lambda each=each: _is_made(api, each))


def _is_made(api: Api, thing: Object) -> bool:
    """A webhook that was only just registered may not be asked yet, or not answer yet."""
    try:
        api.create(thing)
    except Refused as refused:
        if refused.reason == "AlreadyExists":
            return True
        if refused.status < 500:
            raise
        return False
    return True


def _kueue(kind: str, name: str, space: str = "", **told: Any) -> Object:
    meta = {"name": name, **({"namespace": space} if space else {})}
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": meta, **told}


def runtimes(api: Api, kinds: dict[str, Object]) -> None:
    """A ClusterTrainingRuntime for each word; its pods say what kwok plays."""
    for name, meta in kinds.items():
        job = {
            "name": "node",
            "template": {
                "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
                "spec": {"template": {"metadata": meta, "spec": _pod(0, name="node")}},
            },
        }
        spec = {
            "mlPolicy": {"numNodes": 1, "torch": {}},
            "template": {"spec": {"replicatedJobs": [job]}},
        }
        made = {
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": "ClusterTrainingRuntime",
            "metadata": {"name": name, "labels": {"trainer.kubeflow.org/framework": "torch"}},
            "spec": spec,
        }
        until(lambda made=made: _is_made(api, made))


def _pod(gpus: int, **main: Any) -> Object:
    amounts = {"limits": {GPU: str(gpus), "cpu": "1", "memory": "1Gi"}} if gpus else {}
    container = {"name": "main", "image": "train:1", **main}
    return {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        "containers": [{**container, **({"resources": amounts} if amounts else {})}],
    }


def queued(name: str, space: str, queue: str, priority: str) -> Object:
    """The metadata of what Kueue is to admit."""
    labels = {"kueue.x-k8s.io/queue-name": queue, "kueue.x-k8s.io/priority-class": priority}
    return {"name": name, "namespace": space, "labels": labels}


def job(meta: Object, pods: int, gpus: int, pod: Object, **spec: Any) -> Object:
    """A suspended Job; `pod` is its pods' metadata, `spec` what else its pods say."""
    template = {"metadata": pod, "spec": _pod(gpus) | spec}
    body = _job(pods, template) | {"suspend": True}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": body}


def job_set(meta: Object, jobs: int, pods: int, gpus: int, pod: Object) -> Object:
    """A JobSet of so many Jobs of so many pods each."""
    template = {"spec": _job(pods, {"metadata": pod, "spec": _pod(gpus)})}
    replicated = {"name": "worker", "replicas": jobs, "template": template}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": meta,
        "spec": {"replicatedJobs": [replicated], "suspend": True},
    }


def _job(pods: int, template: Object) -> Object:
    counts = {"parallelism": pods, "completions": pods, "completionMode": "Indexed"}
    return {**counts, "backoffLimit": 1, "template": template}


def train_job(meta: Object, runtime: str, pods: int, gpus: int) -> Object:
    """A TrainJob of one of the runtimes."""
    amounts = {GPU: str(gpus), "cpu": "1", "memory": "1Gi"}
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": meta,
        "spec": {
            "runtimeRef": {"name": runtime},
            "trainer": {"numNodes": pods, "resourcesPerNode": {"limits": amounts}},
            "suspend": True,
        },
    }
