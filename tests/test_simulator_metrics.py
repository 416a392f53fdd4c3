"""The simulated fleet's metrics: loadable, with every trap of real exporters, and with a truth.

Whether the pipeline reads them rightly is for its own tests; the fleet's events are in
test_simulator.py.
"""

import filecmp
import shutil
import subprocess
from collections import Counter, defaultdict
from itertools import pairwise

import pytest

import simulator
from simulator.clock import SECOND
from simulator.fleet import BEGIN, live
from simulator.metrics import gauges
from tests.gpu_rules import states
from tests.measured import CLUSTERS, Series, read, rows, some

pytestmark = pytest.mark.whole

START = int(BEGIN.timestamp())
LOOKED_AT = (
    *("DCGM_", "dcgm_", "up{", "kube_pod_info", "kube_pod_labels", "kube_pod_status_scheduled"),
    *("kube_node", "container_"),
)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    """Two clusters of together 64 GPUs and a day; the text is large, so it goes at the end."""
    out = tmp_path_factory.mktemp("measured")
    yield simulator.build(out, seed=7, size="measured", days=1, metrics=True).parent
    shutil.rmtree(out / "prometheus")


@pytest.fixture(scope="module")
def told(fleet) -> dict[str, list[Series]]:
    """The series of each cluster that the tests look at."""
    pages = {name: fleet / "prometheus" / f"{name}.om" for name in CLUSTERS}
    return {name: list(read(page, *LOOKED_AT)) for name, page in pages.items()}


# The text


def test_metrics_change_no_event_and_no_truth_of_the_record(fleet, tmp_path):
    plain = simulator.build(tmp_path, seed=7, size="measured", days=1).parent
    files = [p.relative_to(plain) for p in plain.rglob("*") if p.is_file()]
    assert len(files) == 2 * (11 + 5) + 1
    for file in files:
        assert filecmp.cmp(plain / file, fleet / file, shallow=False), file


def test_the_same_seed_gives_the_same_metrics(fleet, tmp_path):
    begin = START * SECOND
    world = live("beta", 1, seed=7, size="measured", begin=begin, days=1, keeps=True)
    gauges(world, 1).save(tmp_path / "again.om")
    assert filecmp.cmp(tmp_path / "again.om", fleet / "prometheus" / "beta.om", shallow=False)
    (tmp_path / "again.om").unlink()


def test_promtool_loads_every_sample(fleet, tmp_path, require):
    promtool = require("promtool", shutil.which("promtool"), "install Debian's package prometheus")
    for cluster in CLUSTERS:
        text, out = fleet / "prometheus" / f"{cluster}.om", tmp_path / cluster
        expected = sum(int(row["samples"]) for row in rows(fleet, "samples", cluster))
        # One block, or promtool reads the whole file once for every two hours.
        load = [promtool, "tsdb", "create-blocks-from", "openmetrics", "--max-block-duration=54h"]
        answer = subprocess.run([*load, text, out], capture_output=True, text=True)
        assert answer.returncode == 0, answer.stderr
        told = subprocess.run([promtool, "tsdb", "list", out], capture_output=True, text=True)
        assert sum(int(line.split()[4]) for line in told.stdout.splitlines()[1:]) == expected > 1e4


def test_samples_of_a_series_stand_together_and_in_order(told):
    for series in told.values():
        keys = [(s.name, *sorted(s.labels.items())) for s in series]
        assert len(keys) == len(set(keys))
        assert [s.name for s in series] == sorted(s.name for s in series)
        for one in series:
            assert all(a < b for a, b in pairwise(one.times)), one.labels


def test_gpus_are_read_every_half_minute_of_the_day(told):
    [one] = [s for s in some(told["alpha"], "up", job="kube-state-metrics")]
    assert len(one.times) == 1440
    steps = Counter()
    for one in some(told["alpha"], "DCGM_FI_DEV_FB_USED"):
        steps += Counter(round(b - a) for a, b in pairwise(one.times))
    assert steps[30] > 0.999 * steps.total()


# Whose reading it is


def test_under_honor_labels_false_the_workload_is_exported_and_pod_is_the_exporter(told):
    found = some(told["alpha"], "DCGM_FI_DEV_GPU_UTIL")
    assert all(s.labels["pod"].startswith("dcgm-exporter-") for s in found)
    assert {"exported_pod" in s.labels for s in found} == {True, False}  # idle GPUs have none


def test_under_honor_labels_true_pod_is_the_workload_or_the_exporter(told):
    found = some(told["beta"], "DCGM_FI_PROF_SM_UTIL_RATIO")
    assert not any("exported_pod" in s.labels for s in found)
    assert {s.labels["pod"].startswith("dcgm-exporter-") for s in found} == {True, False}


def test_under_a_scrape_by_annotation_an_idle_gpu_has_no_pod(told):
    found = some(told["beta"], "DCGM_FI_DEV_GPU_UTIL_RATIO", job="kubernetes-pods")
    assert {"pod" in s.labels for s in found} == {True, False}


def test_kube_state_metrics_comes_with_both_settings_and_for_a_while_twice(told):
    assert all("exported_pod" not in s.labels for s in some(told["alpha"], "kube_pod_info"))
    found = some(told["beta"], "kube_pod_info")
    assert all(s.labels["pod"].startswith("kube-state-metrics-") for s in found)
    by_pod = defaultdict(set)
    for one in found:
        by_pod[one.labels["uid"]].add(one.labels["instance"])
    assert {len(instances) for instances in by_pod.values()} >= {1, 2}
    assert some(told["alpha"], "kube_pod_labels") and not some(told["beta"], "kube_pod_labels")


def test_old_and_new_names_old_and_new_labels_occur(told):
    names = {cluster: {s.name for s in series} for cluster, series in told.items()}
    assert {"DCGM_FI_DEV_GPU_UTIL", "dcgm_fi_prof_gr_engine_active"} <= names["alpha"]
    assert {"DCGM_FI_DEV_GPU_UTIL_RATIO", "DCGM_FI_PROF_TENSOR_UTIL_RATIO"} <= names["beta"]
    [old, *_] = [s for s in told["alpha"] if s.name == "dcgm_fi_dev_fb_used"]
    assert {"uuid", "pod_name", "pod_namespace", "container_name"} <= old.labels.keys()
    assert all("Hostname" in s.labels for s in told["alpha"] if s.name.startswith("DCGM_"))
    assert all("hostname" in s.labels for s in told["beta"] if s.name.startswith("DCGM_"))


def test_claims_and_hpc_jobs_are_labels(told):
    assert any("dra_claim_name" in s.labels for s in told["beta"])
    assert any("hpc_job" in s.labels for s in told["alpha"])


def test_profiling_metrics_are_off_somewhere_and_sm_activity_elsewhere(told):
    def nodes(name: str) -> set[str]:
        return {s.labels["Hostname"] for s in some(told["alpha"], name)}

    assert "serve-00" in nodes("DCGM_FI_DEV_GPU_UTIL") - nodes("DCGM_FI_PROF_GR_ENGINE_ACTIVE")
    assert "owned-00" in nodes("DCGM_FI_PROF_GR_ENGINE_ACTIVE") - nodes("DCGM_FI_PROF_SM_ACTIVE")
    assert "hami-00" not in nodes("DCGM_FI_DEV_GPU_UTIL")  # no exporter there at all


def test_a_shared_gpu_is_one_pod_s_or_everyone_s_or_split_by_process(told):
    def at_once(found: list[Series]) -> int:
        return max(Counter(t for s in found for t in s.times).values())

    power = "DCGM_FI_DEV_POWER_USAGE"
    by_gpu = defaultdict(list)
    for one in some(told["alpha"], power, Hostname="slice-00"):
        by_gpu[one.labels["UUID"]].append(one)
    assert {at_once(found) for found in by_gpu.values()} == {1}
    copies = some(told["alpha"], power, Hostname="slice2-00")
    assert at_once(copies) > 1 and any("vgpu" in s.labels for s in copies)
    split = some(told["beta"], "DCGM_FI_DEV_GPU_UTIL_RATIO", hostname="slice-00")
    assert {"pod_uid" in s.labels for s in split} == {True, False}
    assert at_once(split) > 1


def test_mig_instances_have_no_utilisation_and_repeat_their_gpu_s_power(told):
    parts = [s for s in told["alpha"] if s.labels.get("Hostname") == "mig-00"]
    assert not any(s.name == "DCGM_FI_DEV_GPU_UTIL" for s in parts)
    watts = defaultdict(set)
    for one in (s for s in parts if s.name == "DCGM_FI_DEV_POWER_USAGE"):
        for time, value in zip(one.times, one.values, strict=True):
            if value < 1e6:
                watts[one.labels["UUID"], time].add(value)
    assert {len(values) for values in watts.values()} == {1}
    profiles = {s.labels["GPU_I_PROFILE"] for s in parts if "GPU_I_PROFILE" in s.labels}
    assert "3g.39gb" in profiles and "3g.40gb" not in profiles  # not the resource's text


def test_labels_lag_fail_and_double(told, fleet):
    bound = {r["pod_name"]: int(r["bound_at"]) for r in rows(fleet, "pods", "alpha")}
    lags = [
        one.times[0] - bound[one.labels["exported_pod"]]
        for one in some(told["alpha"], "DCGM_FI_DEV_FB_USED", Hostname="mig-00")
        if "exported_pod" in one.labels and one.times[0] > START + 60
    ]
    assert lags and min(lags) >= 40
    bare = Counter()
    for one in some(told["alpha"], "DCGM_FI_DEV_FB_USED", Hostname="train-00"):
        if "exported_pod" not in one.labels:
            bare.update(one.times)
    lost = START + int(0.36 * 86400)
    assert sum(lost <= t < lost + 90 and n == 8 for t, n in bare.items()) == 3
    moved = Counter()
    for one in some(told["alpha"], "up", job="dcgm-exporter"):
        moved.update(one.times)
    assert sum(n == 2 for n in moved.values()) == 4  # two nodes, two scrapes of both pods
    drivers = {s.labels.get("DCGM_FI_DRIVER_VERSION") for s in told["alpha"]}
    assert {"580.95.05", "580.105.08"} <= drivers


def test_an_exporter_is_away_and_says_so_with_up(told, fleet):
    down = Counter()
    for cluster in CLUSTERS:
        for one in some(told[cluster], "up"):
            down[cluster] += one.values.count(0.0)
    assert min(down[c] for c in CLUSTERS) > 10
    causes = {row["cause"] for row in rows(fleet, "gaps")}
    assert causes == {"exporter_down", "no_series", "rejected"}


# What is no reading


def test_every_reading_that_is_none_is_in_the_truth_and_no_other(told, fleet):
    wrong = Counter()
    for cluster, series in told.items():
        for one in series:
            if "XID" in one.name or not one.name.startswith("DCGM_FI"):
                continue
            is_percent = "GPU_UTIL" in one.name
            limit = 1e14 if "PCIE" in one.name or "ENERGY" in one.name else 2147483632
            for value in one.values:
                if value >= limit or (is_percent and value > 100):
                    wrong[cluster, one.name] += 1
    expected = Counter((r["cluster"], r["metric"]) for r in rows(fleet, "rejected"))
    assert wrong == expected
    assert {r["reason"] for r in rows(fleet, "rejected")} == {"sentinel", "out_of_range"}


def test_no_gpu_has_more_memory_in_use_than_it_has(told):
    free = [s for series in told.values() for s in series if s.name.upper().endswith("_FB_FREE")]
    assert len(free) > 40 and all(min(s.values) > 0 for s in free)


def test_an_error_stays_until_another_and_a_windowed_count_falls(told, fleet):
    codes = Counter(row["kind"] for row in rows(fleet, "xids"))
    assert codes.keys() == {"fatal", "application", "cleanup"}
    assert {row["is_told"] for row in rows(fleet, "xids")} == {"0", "1"}
    sticky = [s for s in some(told["alpha"], "DCGM_FI_DEV_XID_ERRORS") if "err_code" in s.labels]
    assert max(len(s.times) for s in sticky) > 100
    windowed = [s for c in CLUSTERS for s in some(told[c], "DCGM_EXP_XID_ERRORS_COUNT")]
    assert windowed and all(len(s.times) % 10 == 0 or len(s.times) < 30 for s in windowed)


def test_energy_is_the_power_in_millijoules(told):
    power = {}
    for one in some(told["beta"], "DCGM_FI_DEV_BOARD_POWER_WATTS", hostname="train-00"):
        for time, value in zip(one.times, one.values, strict=True):
            power[one.labels["UUID"], time] = value
    energy: dict = defaultdict(dict)
    for one in some(told["beta"], "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", hostname="train-00"):
        energy[one.labels["UUID"]].update(zip(one.times, one.values, strict=True))
    assert len(energy) == 8
    for uuid, counted in energy.items():
        times = sorted(counted)
        used = (counted[times[-1]] - counted[times[0]]) / 1000
        watts = [power[uuid, t] for t in times if power[uuid, t] < 1e6]
        whole = sum(watts) / len(watts) * (times[-1] - times[0])
        assert used == pytest.approx(whole, rel=0.05)


def test_a_gpu_that_fell_off_the_bus_has_no_series_any_more(told, fleet):
    lost = [r for r in rows(fleet, "xids", "alpha") if r["code"] == "79"]
    assert lost
    for row in lost:
        at = int(row["at"])
        times = [
            t
            for s in some(told["alpha"], "DCGM_FI_DEV_FB_USED", UUID=row["gpu_uuid"])
            for t in s.times
        ]
        assert not any(at + 75 < t < at + 3600 for t in times)
        assert any(t < at for t in times)


# The truth


def test_each_held_second_of_a_gpu_has_one_state(fleet):
    for folder in ("gpu_states", "prometheus/gpu_states"):
        by_hold = defaultdict(list)
        for row in rows(fleet, folder):
            key = (row["cluster"], row["pod_uid"], row["gpu_uuid"], row["gi_id"])
            by_hold[key].append((int(row["begin"]), int(row["end"])))
        assert len(by_hold) > 300
        for parts in by_hold.values():
            assert all(a[1] == b[0] for a, b in pairwise(sorted(parts)))


def test_states_of_whole_gpus_add_up_to_the_ledger(fleet):
    names = {r["node_uid"]: r["node_name"] for r in rows(fleet, "gpu_states")}
    whole = {uid for uid, name in names.items() if name.startswith(("train", "owned", "serve"))}
    ours: Counter[str] = Counter()
    for row in rows(fleet, "gpu_states"):
        ours[row["node_uid"]] += int(row["end"]) - int(row["begin"])
    theirs: Counter[str] = Counter()
    for table in ("ledger", "unbooked"):
        for row in rows(fleet, table):
            if row["workload"]:
                seconds = int(row["end"]) - int(row["begin"])
                theirs[row["node_uid"]] += seconds * int(row["micro_gpu"]) // 1_000_000
    assert whole
    assert {uid: ours[uid] for uid in whole} == {uid: theirs[uid] for uid in whole}


def test_a_pod_is_loading_until_it_works_for_the_first_time_or_half_an_hour_is_over(fleet):
    loading: dict = defaultdict(list)
    for row in rows(fleet, "gpu_states"):
        if row["state"] == "loading" and not row["node_name"].startswith("serve"):
            key = (row["pod_uid"], row["gpu_uuid"], row["gi_id"])
            loading[key].append((int(row["begin"]), int(row["end"])))
    lasted = [sum(end - begin for begin, end in parts) for parts in loading.values()]
    assert len(lasted) > 50 and max(lasted) == 1800
    late = [int(r["begin"]) - int(r["since"]) for r in rows(fleet, "idle_episodes")]
    assert 0 in late and any(1700 < seconds <= 1800 for seconds in late)


def test_where_metrics_alone_tell_a_hold_begins_when_its_pod_was_scheduled(told, fleet):
    for cluster in CLUSTERS:
        bound = {
            s.labels["uid"]: s.values[0]
            for s in some(told[cluster], "kube_pod_status_scheduled_time")
        }
        begins: dict[str, int] = {}
        for row in rows(fleet, "prometheus/gpu_states", cluster):
            begins[row["pod_uid"]] = min(int(row["begin"]), begins.get(row["pod_uid"], 1 << 60))
        late = {uid: begin for uid, begin in begins.items() if begin > START}
        wrong = {uid for uid, begin in late.items() if bound.get(uid) != begin}
        assert len(late) > 50
        assert all(uid not in bound for uid in wrong) and len(wrong) <= 1  # its manifest says where


def test_nearly_all_of_it_can_be_scored(fleet):
    seconds: Counter[str] = Counter()
    for row in rows(fleet, "gpu_states"):
        if row["sharers"] == "1":
            seconds[row["is_scored"]] += int(row["end"]) - int(row["begin"])
    assert seconds["1"] > 0.97 * seconds.total()


def test_every_cause_of_idleness_occurs_and_episodes_keep_their_length(fleet):
    told = rows(fleet, "idle_episodes")
    causes = {row["likely_cause_name"] for row in told if row["is_cause_scored"] == "1"}
    assert causes == {
        *("never_worked", "waiting_for_peers", "waiting_for_input", "no_requests"),
        *("work_ended", "interactive", "broken"),
    }
    for row in told:
        assert row["is_open"] == "1" or int(row["end"]) - int(row["since"]) >= 1800
    assert {row["is_open"] for row in told} == {"0", "1"}
    assert {row["cause"] for row in told} == {"memory_held", "empty"}


def test_a_heartbeat_does_not_end_an_episode(fleet):
    beating = [row for row in rows(fleet, "idle_episodes") if int(row["heartbeats"])]
    assert beating
    for row in beating:
        active = [
            int(a["end"]) - int(a["begin"])
            for a in rows(fleet, "gpu_activity", row["cluster"])
            if (a["gpu_uuid"], a["kind"]) == (row["gpu_uuid"], "active")
            and int(row["since"]) < int(a["begin"]) < int(row["end"] or 1e12)
        ]
        assert len(active) == int(row["heartbeats"])
        assert sum(active) < 0.01 * (int(row["end"]) - int(row["since"]))


def test_stalls_of_both_kernels_and_all_findings_occur(fleet):
    scored = [r for r in rows(fleet, "stalled_episodes") if r["is_scored"] == "1"]
    assert {r["kernel"] for r in scored} == {"spin", "collective"}
    assert {r["confidence"] for r in scored} == {"likely", "suspected"}  # by PROF, or without
    assert all(int(r["end"]) - int(r["begin"]) >= 600 for r in scored)
    for table in ("over_sized", "nvlink_silent", "used_without_hold"):
        assert rows(fleet, table), table


def test_states_read_from_the_samples_are_the_truth_s_but_for_a_sample_at_each_edge(told, fleet):
    for cluster in CLUSTERS:
        dcgm = [s for s in told[cluster] if s.name.upper().startswith("DCGM_FI")]
        found = states(dcgm)
        scored = 0
        for row in rows(fleet, "gpu_states", cluster):
            if row["state"] not in ("active", "idle", "stalled") or row["is_scored"] == "0":
                continue
            begin, end = int(row["begin"]), int(row["end"])
            for since, until, state in found.get((row["gpu_uuid"], row["gi_id"]), ()):
                here = (max(since, begin), min(until, end))
                if row["unobserved"] or here[0] >= here[1]:
                    continue
                scored += here[1] - here[0]
                if state != row["state"]:
                    assert here[1] - begin <= 40 or end - here[0] <= 40, (row, since, until, state)
        assert scored > 200 * 3600
