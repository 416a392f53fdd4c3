"""What a build of the control plane says where it cannot build; a real one is CI's first step."""

import pytest

from tests import control_plane_build
from tests.control_plane_build import COMPONENTS, QUEUEING, NotBuilt


@pytest.fixture(autouse=True)
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("GPULEDGER_BINARIES", str(tmp_path / "cache"))


def test_half_a_control_plane_is_none():
    assert control_plane_build.found() is None
    for component in COMPONENTS[1:]:
        component.place.mkdir(parents=True)
    assert control_plane_build.found() is None
    COMPONENTS[0].place.mkdir()
    assert control_plane_build.found()


def test_the_gate_needs_no_kueue_and_kueue_needs_the_control_plane():
    for component in COMPONENTS:
        component.place.mkdir(parents=True)
    assert control_plane_build.found()
    assert control_plane_build.found(COMPONENTS + QUEUEING) is None
    for component in QUEUEING:
        component.place.mkdir()
    there = control_plane_build.found(COMPONENTS + QUEUEING)
    assert there and {"kueue", "jobset", "trainer-controller-manager", "etcd"} <= there.keys()


def test_without_go_nothing_is_built_and_the_reason_is_said(monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(NotBuilt, match="no Go"):
        control_plane_build.build()


def test_a_failed_build_says_what_go_said_and_leaves_nothing(tmp_path, monkeypatch):
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "go").write_text("#!/bin/sh\necho no such module >&2\nexit 1\n")
    (tools / "go").chmod(0o755)
    monkeypatch.setenv("PATH", str(tools), prepend=":")
    (control_plane_build.cache() / "building-by-one-that-was-killed").mkdir(parents=True)
    with pytest.raises(NotBuilt, match="no such module"):
        control_plane_build.build()
    assert [each.name for each in control_plane_build.cache().iterdir()] == ["build.lock"]
