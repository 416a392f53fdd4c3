"""A Kubernetes API as a source: recorded answers in a folder, and whom a recorder watches for it.

What is recorded belongs to `collectors`.
"""

from typing import Literal, Self

from pydantic import Field, model_validator

from models.parts import Beside, Moment, Part


class Lease(Part):
    """A Lease that a recorder holds while it records: of several one records, the others wait."""

    namespace: str = Field(min_length=1)
    """gpuledger's own: the one in which a Role allows it."""
    name: str = Field(default="gpuledger-watch", min_length=1)
    seconds: int = Field(default=15, ge=10, le=3600)
    """So long after its last renewal another may take it."""


class Watch(Part):
    """The API server that `gpuledger watch` records, reached as kubectl would reach it."""

    kubeconfig: Beside | None = None
    """Else what KUBECONFIG names, else the user's own."""
    context: str | None = Field(default=None, min_length=1)
    in_cluster: bool = False
    """By the service account of the pod that the recorder runs in."""
    segment_seconds: int = Field(default=240, ge=1, le=86_400)
    """A segment older than this is sealed; only then it is read."""
    segment_mib: int = Field(default=64, ge=1, le=4096)
    """So is a longer one."""
    keep_days: int = Field(default=14, ge=1)
    """Sealed segments are removed when they are older."""
    discover_seconds: int = Field(default=60, ge=1, le=86_400)
    """How often the API is asked for kinds that are new."""
    lease: Lease | None = None
    """Off unless told; the spool's own lock keeps two recorders of one folder apart anyway."""

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.in_cluster and (self.kubeconfig or self.context):
            raise ValueError("in_cluster excludes kubeconfig and context")
        return self


class KubernetesSource(Part):
    """Recorded answers of a Kubernetes API: lists and watch streams in a folder."""

    kind: Literal["kubernetes"]
    path: Beside
    """Of a live cluster the recorder's spool."""
    observed_at: Moment | None = None
    """When the lists were read; else the newest time in them."""
    watch: Watch | None = None
