"""Builds the Kubernetes control plane that tests run, once for each version, into a cache.

`python -m tests.control_plane_build` builds what is missing, within minutes; with `--kueue` also
the controllers of queued jobs, which only `-m cluster` runs. What a built one does belongs to
`tests/control_plane.py` and `tests/control_plane_kueue.py`. Modules come from wherever Go is told
to fetch them.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

REMEDY = "run `uv run python -m tests.control_plane_build`, which needs Go and some minutes"


@dataclass(frozen=True)
class Component:
    """What one module gives: its commands, built with the versions that its own go.mod names."""

    name: str
    module: str
    version: str
    commands: dict[str, str]
    """Each binary's name and its package within the module."""
    neighbours: str = ""
    """The version of what go.mod takes from neighbouring folders, where it requires none itself."""
    variables: tuple[str, ...] = ()
    """What the linker sets: without, an API server calls itself v0.0.0."""
    folders: tuple[str, ...] = ()
    """Folders of the module that are kept beside the binaries, under their last name."""

    @property
    def place(self) -> Path:
        """Where it is once it is built."""
        return cache() / f"{self.name}-{self.version}"

    @property
    def is_built(self) -> bool:
        """Whether it is there; half a build never is."""
        return self.place.is_dir()


COMPONENTS = (
    Component("etcd", "go.etcd.io/etcd/server/v3", "v3.6.16", {"etcd": "."}),
    Component(
        "kubernetes",
        "k8s.io/kubernetes",
        "v1.36.3",
        {
            name: f"./cmd/{name}"
            for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
        },
        "v0.36.3",
        (
            "k8s.io/component-base/version.gitVersion=v1.36.3",
            "k8s.io/component-base/version.gitMajor=1",
            "k8s.io/component-base/version.gitMinor=36",
        ),
    ),
    Component(
        "kwok", "sigs.k8s.io/kwok", "v0.8.0", {"kwok": "./cmd/kwok"}, folders=("kustomize/stage",)
    ),
)
QUEUEING = (
    Component(
        "kueue",
        "sigs.k8s.io/kueue",
        "v0.17.0",
        {"kueue": "./cmd/kueue"},
        folders=("config/components/crd/bases", "config/components/webhook"),
    ),
    Component(
        "jobset",
        "sigs.k8s.io/jobset",
        "v0.11.1",
        {"jobset": "."},
        folders=("config/components/crd/bases", "config/components/webhook"),
    ),
    Component(
        "trainer",
        "github.com/kubeflow/trainer/v2",
        "v2.2.0",
        {"trainer-controller-manager": "./cmd/trainer-controller-manager"},
        folders=("manifests/base/crds", "manifests/base/webhook"),
    ),
)
"""Kueue, and the controllers of the JobSets and TrainJobs that it admits."""


class NotBuilt(Exception):
    """A component could not be built, and why."""


def cache() -> Path:
    """The folder that keeps what was built, outside any clone."""
    told = os.environ.get("GPULEDGER_BINARIES")
    return Path(told) if told else Path.home() / ".cache" / "gpuledger"


def found(components: tuple[Component, ...] = COMPONENTS) -> dict[str, Path] | None:
    """Where each binary is, and kwok's stages as `stages`; None where one is missing."""
    if not all(component.is_built for component in components):
        return None
    binaries = {name: each.place / name for each in components for name in each.commands}
    (kwok,) = (each for each in COMPONENTS if each.name == "kwok")
    return {**binaries, "stages": kwok.place / "stage"}


def build(components: tuple[Component, ...] = COMPONENTS) -> dict[str, Path]:
    """Builds what is missing. A second process waits for the first instead of building too."""
    cache().mkdir(parents=True, exist_ok=True)
    with FileLock(cache() / "build.lock"):
        missing = [component for component in components if not component.is_built]
        if missing and not shutil.which("go"):
            raise NotBuilt("there is no Go on this machine")
        if missing:
            _build(missing)
    binaries = found(components)
    assert binaries is not None
    return binaries


def _build(missing: list[Component]) -> None:
    """Builds with caches of its own: they take gigabytes, and nothing needs them afterwards."""
    for left in cache().glob("building-*"):
        shutil.rmtree(left)  # by a build that was killed; we hold the lock
    with tempfile.TemporaryDirectory(prefix="building-", dir=cache()) as scratch:
        work = Path(scratch)
        environment = os.environ | {
            "CGO_ENABLED": "0",
            "GOCACHE": str(work / "cache"),
            # Writable, or it could not be removed.
            "GOFLAGS": "-modcacherw",
            "GOMODCACHE": str(work / "modules"),
            "GOTMPDIR": scratch,
            "GOTOOLCHAIN": "local",
            "GOWORK": "off",
        }
        for component in missing:
            began = time.monotonic()
            _build_one(component, work, environment)
            _say(f"{component.name} {component.version}: {time.monotonic() - began:.0f} s")


def _build_one(component: Component, work: Path, environment: dict[str, str]) -> None:
    aside = work / component.name
    output = aside / "output"
    output.mkdir(parents=True)
    versioned = f"{component.module}@{component.version}"
    told = _go(environment, work, "mod", "download", "-json", versioned)
    source = Path(json.loads(told)["Dir"])
    # go.mod is changed in a copy, for the module itself is to stay as it was fetched.
    modfile = aside / "go.mod"
    for name in ("go.mod", "go.sum"):
        shutil.copyfile(source / name, aside / name)
    edits = _edits(
        json.loads(_go(environment, work, "mod", "edit", "-json", str(modfile))), component
    )
    if edits:
        _go(environment, work, "mod", "edit", *edits, str(modfile))
    linked = " ".join(("-s -w", *(f"-X {variable}" for variable in component.variables)))
    flags = ("-mod=mod", f"-modfile={modfile}", "-trimpath", "-p=2", f"-ldflags={linked}")
    _say(f"building {', '.join(component.commands)} {component.version} …")
    for name, package in component.commands.items():
        _go(environment, source, "build", *flags, "-o", str(output / name), package)
    for folder in component.folders:
        shutil.copytree(source / folder, output / Path(folder).name)
    output.rename(component.place)


def _edits(module: dict, component: Component) -> list[str]:
    """Takes from modules of their own what go.mod takes from folders that were not fetched."""
    taken = (each["Old"]["Path"] for each in module.get("Replace") or () if _is_folder(each))
    if component.neighbours:
        return [f"-replace={path}={path}@{component.neighbours}" for path in taken]
    return [f"-dropreplace={path}" for path in taken]


def _is_folder(replaced: dict) -> bool:
    return replaced["New"]["Path"].startswith(".")


def _go(environment: dict[str, str], folder: Path, *arguments: str) -> str:
    answer = subprocess.run(
        ["nice", "go", *arguments], cwd=folder, env=environment, capture_output=True, text=True
    )
    if answer.returncode:
        said = answer.stderr.strip().splitlines()[-20:]
        raise NotBuilt("\n".join((f"go {' '.join(arguments)} failed:", *said)))
    return answer.stdout


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        wanted = COMPONENTS + QUEUEING if "--kueue" in sys.argv[1:] else COMPONENTS
        for binary, place in build(wanted).items():
            print(f"{binary}: {place}")
    except NotBuilt as problem:
        sys.exit(str(problem))
