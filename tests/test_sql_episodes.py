"""Episodes of idle and stalled GPUs: how long, why, at what cost; and what does not fit.

What a GPU did is in test_sql_gpu_states, on which one a hold lies in test_sql_hold_parts.
"""

import pytest

from models.raw_metrics import POD_SAMPLES
from tests.sql_case import GPU, HOUR, MIDNIGHT, Case, Row

END = 4 * 3600
WORK: Row = {
    "sm_ratio": 0.5,
    "utilisation_ratio": 0.9,
    "memory_used_mib": 9000.0,
    "power_watts": 60.0,
}
QUIET: Row = {
    "sm_ratio": 0.0,
    "utilisation_ratio": 0.0,
    "memory_used_mib": 9000.0,
    "power_watts": 27.0,
}
EMPTY: Row = QUIET | {"memory_used_mib": 4.0}
SPIN: Row = WORK | {"utilisation_ratio": 1.0, "tensor_ratio": 0.0, "dram_ratio": 0.0}
ZERO = int(MIDNIGHT.timestamp())


def case_of(*spells, pod=None, gpus=1, price=None, seconds=END):
    """A pod that holds GPU g, which reads so from second to second."""
    case = Case(seconds)
    case.node("n", gpus=gpus, created_at=-9000)
    if price:
        case.price(price)
    case.pod("p", "n", **(pod or {}))
    for begin, end, readings in spells:
        case.read("g", begin, end, pod="p", **readings)
    return case


def episodes(case, columns="begin_at, end_at", name="idle"):
    """The day's pieces, instants as seconds."""
    rows = case.ask(
        f"select {columns} from mart.gpu_episodes where episode_name = '{name}' order by begin_at"
    )
    return [
        tuple(int(v.timestamp()) - ZERO if hasattr(v, "timestamp") else v for v in row)
        for row in rows
    ]


def cause(case):
    found = {row[0] for row in episodes(case, "likely_cause_name")}
    assert len(found) == 1
    return found.pop()


def counts(case, begin, end, **rates):
    """What cAdvisor counts of the pod at both ends: rates are per second."""
    for second in (begin + 5, end - 5):
        told = {name: rate * (second - begin) for name, rate in rates.items()}
        case.add(POD_SAMPLES, namespace_name="x", pod_name="p", exporter_name="k",
                 sampled_at=second, **told)  # fmt: skip


def test_a_job_that_was_busy_first_and_idle_since_is_an_episode_that_goes_on():
    case = case_of((0, 3600, WORK), (3600, END, QUIET))
    assert episodes(case, "begin_at, end_at, is_open, last_active_at") == [(3600, END, True, 3600)]
    assert episodes(case, "active_before_seconds, active_after_seconds") == [(None, None)]


def test_half_an_hour_is_an_episode_and_half_a_minute_less_is_none():
    for length, found in ((1800, 1), (1770, 0)):
        case = case_of((0, 3600, WORK), (3600, 3600 + length, QUIET), (3600 + length, END, WORK))
        assert len(episodes(case)) == found


def test_a_heartbeat_of_less_than_a_hundredth_does_not_begin_it_anew():
    """One sample of 30 s in 10,800 is 0.3 %; four in a row after 5,400 s would be 1.2 %."""
    beat = case_of((0, 3600, WORK), (3600, 9000, QUIET), (9000, 9030, WORK), (9030, END, QUIET))
    assert episodes(beat, "begin_at, end_at, active_seconds") == [(3600, END, 30)]
    more = case_of((0, 3600, WORK), (3600, 9000, QUIET), (9000, 9120, WORK), (9120, END, QUIET))
    assert episodes(more) == [(3600, 9000), (9120, END)]


def test_a_restart_of_the_containers_ends_it():
    case = case_of((0, 600, WORK), (600, END, QUIET))
    case.pod("p", "n", seen=7205, bound_at=0, running_since_at=None, stopped_at=7200)
    case.pod("p", "n", seen=7265, bound_at=0, running_since_at=7260, stopped_at=7200)
    assert episodes(case) == [(600, 7200), (7260, END)]


def test_short_pieces_stay_where_they_touch_an_end_of_the_day():
    before = dict.fromkeys(("bound_at", "running_since_at", "created_at"), -7200)
    case = case_of((0, 600, QUIET), (600, 13800, WORK), (13800, END, QUIET), pod=before)
    assert episodes(case, "begin_at, end_at, active_before_seconds, is_open") == [
        (0, 600, 0, False),
        (13800, END, None, True),
    ]


def test_short_pieces_stay_where_a_heartbeat_is_between_them_and_midnight():
    """90 s of work at both ends of the day, and 20 minutes of quiet beside them."""
    day = 86_400
    before = dict.fromkeys(("bound_at", "running_since_at", "created_at"), -7200)
    beat, quiet = 90, 1200
    case = case_of(
        (0, beat, WORK), (beat, beat + quiet, QUIET), (beat + quiet, day - beat - quiet, WORK),
        (day - beat - quiet, day - beat, QUIET), (day - beat, day, WORK), pod=before, seconds=day,
    )  # fmt: skip
    columns = "begin_at, end_at, active_before_seconds, active_after_seconds, is_open"
    assert episodes(case, columns) == [
        (beat, beat + quiet, beat, None, False),
        (day - beat - quiet, day - beat, None, beat, False),
    ]


def test_it_costs_what_the_ledger_says_of_its_idle_time():
    """Two hours at 3.60 an hour; the heartbeat of 30 s is active and costs apart."""
    case = case_of((0, 7170, WORK), (7170, 9000, QUIET), (9000, 9030, WORK | {"sm_ratio": 0.02}),
                   (9030, END, QUIET), price=3_600_000)  # fmt: skip
    spent = case.ledger()
    idle = spent["__unattributed__", "idle", "memory_held"]
    (row,) = episodes(case, "gpu_seconds::double, episode_cost::double, unpriced_gpu_seconds::int")
    assert row == (*idle, 0) == (7200.0, 7.2, 0)


def test_without_a_price_its_cost_is_unknown_and_its_time_is_not():
    (row,) = episodes(case_of((0, 3600, WORK), (3600, END, QUIET)),
                      "episode_cost, gpu_seconds::int, unpriced_gpu_seconds::int")  # fmt: skip
    assert row == (None, 10800, 10800)


def test_a_spinning_kernel_is_an_episode_of_its_own_with_its_evidence():
    case = case_of((0, 3600, WORK), (3600, 7200, SPIN | {"power_watts": 28.0}), (7200, END, WORK))
    case.add_models()
    assert episodes(case, "begin_at, end_at, is_certain", "stalled") == [(3600, 7200, True)]
    assert "GPU_UTIL 100 % on average" in str(episodes(case, "evidence_text", "stalled"))


@pytest.mark.parametrize("kind", ["training", "batch"])
def test_what_never_worked_since_it_was_bound_says_so(kind):
    assert cause(case_of((0, END, QUIET), pod={"workload_class": kind})) == "never_worked"


def test_the_first_kernels_of_a_start_are_not_work():
    assert cause(case_of((0, 90, WORK), (90, END, EMPTY))) == "never_worked"
    assert cause(case_of((0, 150, WORK), (150, END, EMPTY))) == "work_ended"


def test_a_service_without_requests_and_a_notebook_are_idle_as_they_are():
    told = {"workload_class": "inference", "ready_since_at": 60}
    assert cause(case_of((0, 3600, WORK), (3600, END, QUIET), pod=told)) == "no_requests"
    told = {"workload_class": "interactive"}
    assert cause(case_of((0, 3600, WORK), (3600, END, QUIET), pod=told)) == "interactive"


def test_a_process_that_does_nothing_any_more_has_ended_its_work():
    case = case_of((0, 3600, WORK), (3600, END, QUIET))
    assert cause(case) == "unknown"  # nobody tells what its CPU does, and its memory is held
    counts(case, 3600, END, cpu_seconds=0.05, file_read_bytes=0)
    assert cause(case) == "work_ended"


def test_files_read_or_a_throttled_cpu_tell_that_it_waits_for_input():
    for rates in ({"file_read_bytes": 60e6}, {"network_received_bytes": 60e6},
                  {"cfs_period_count": 10, "cfs_throttled_count": 3}):  # fmt: skip
        case = case_of((0, 3600, WORK), (3600, END, QUIET))
        counts(case, 3600, END, **rates)
        assert cause(case) == "waiting_for_input", rates


def test_an_error_as_it_began_tells_that_it_broke_and_clean_up_does_not():
    for xid, found in ((31, "broken"), (45, "unknown")):
        case = case_of(
            (0, 3600, WORK | {"xid_number": 0}), (3600, END, QUIET | {"xid_number": xid})
        )
        assert cause(case) == found


@pytest.mark.parametrize(
    ("spells", "power", "rest"),
    [((EMPTY,), 12, 12), ((QUIET,), 30, 30), ((QUIET, EMPTY), 21, 30)],
)
def test_an_empty_gpu_is_held_against_its_rest_without_a_context(spells, power, rest):
    """Each for an hour, after an hour of work; what was empty only in part had a context, too."""
    told = [(0, HOUR, WORK)]
    for number, readings in enumerate(spells, 1):
        watts = 12.0 if readings is EMPTY else 30.0
        told.append((number * HOUR, (number + 1) * HOUR, readings | {"power_watts": watts}))
    case = case_of(*told, seconds=(len(spells) + 1) * HOUR)
    case.add_models()
    [(found, text)] = episodes(case, "rest_watts, evidence_text")
    assert found == rest
    assert f"{power} W (rest {rest} W)" in str(text)


def test_a_gang_s_member_waits_for_its_peers():
    gang = {"workload_key_uid": "w", "gang_name": "g", "gang_size_count": 2}
    case = case_of((0, 3600, WORK), (3600, END, QUIET), pod=gang, gpus=2)
    case.pod("q", "n", **gang)
    case.read("h", 0, END, pod="q", **WORK)
    assert cause(case) == "waiting_for_peers"


def test_k_of_n_gpus_of_a_pod_that_never_work_are_asked_for_too_much():
    """Three of four; the one that works reads files, which is no reason for the others."""
    four = {"requests": [{"resource_name": GPU, "request_count": 4}], "team_name": "t"}
    case = case_of((0, END, WORK), pod=four, gpus=4, price=1_000_000)
    for gpu in ("h", "i", "j"):
        case.read(gpu, 0, END, pod="p", **EMPTY)
    counts(case, 0, END, file_read_bytes=90e6)
    assert cause(case) == "never_worked"
    assert {row[0] for row in episodes(case, "pod_gpu_count")} == {4}
    assert case.ask(
        "select finding_name, subject_text, gpu_count, of_gpu_count, gpu_uuids_text, "
        "gpu_seconds::int, finding_cost::double, team_name from mart.gpu_findings"
    ) == [("over_sized", "p", 3, 4, "h i j", 3 * END, 12.0, "t")]


def test_ratios_are_of_sums_and_their_coverage_is_held_time_with_an_sm_reading():
    """Two GPUs held for four hours: one at 50 % SM, of the other nothing is told; one is free."""
    two = {"requests": [{"resource_name": GPU, "request_count": 2}], "team_name": "t"}
    case = case_of((0, END, WORK), pod=two, gpus=3, price=1_000_000)
    assert case.ask(
        "select sum(installed_gpu_seconds)::int, sum(available_gpu_seconds)::int, "
        "sum(held_gpu_seconds)::int, sum(active_gpu_seconds)::int, "
        "sum(unobserved_gpu_seconds)::int, sum(sm_observed_gpu_seconds)::int, "
        "sum(effective_gpu_seconds)::int, sum(effective_cost)::double from mart.use_hours"
    ) == [(3 * END, 3 * END, 2 * END, END, END, END, END // 2, 2.0)]
    assert case.ask(
        "select sum(installed_gpu_seconds - gpu_seconds) from (select sum(installed_gpu_seconds) "
        "as installed_gpu_seconds from mart.use_hours) as u, (select sum(gpu_seconds) as "
        "gpu_seconds from core.ledger) as l"
    ) == [(0,)]


def test_what_holds_nothing_has_no_efficiency():
    """Use without a request is told apart; it is divided by nothing."""
    case = Case(END)
    case.node("n")
    case.read("g", 0, END, **WORK)
    rows = case.ask(
        "select sum(effective_gpu_seconds) / nullif(sum(sm_observed_gpu_seconds), 0) "
        "from mart.use_hours"
    )
    assert rows == [(None,)]


def test_a_device_s_hour_tells_what_it_did_and_who_had_it_longest():
    case = case_of((0, 1800, WORK), (1800, 3600, QUIET), pod={"team_name": "t"}, seconds=3600)
    assert case.ask(
        "select team_name, known_seconds, held_seconds, active_seconds, idle_seconds, "
        "round(sm_ratio, 3), round(power_watts, 1) from mart.device_hours"
    ) == [("t", 3600, 3600, 1800, 1800, 0.25, 43.5)]


def test_where_errors_are_not_told_health_is_unknown_and_not_good():
    blind = case_of((0, END, WORK))
    assert blind.ask("select is_xid_told, fatal_count, noise_count from mart.gpu_health") == [
        (False, None, None)
    ]
    told = case_of((0, 3600, WORK | {"xid_number": 0}), (3600, END, WORK | {"xid_number": 45}))
    assert told.ask("select is_xid_told, fatal_count, noise_count from mart.gpu_health") == [
        (True, 0, 1)
    ]


def test_an_error_that_stands_when_we_first_look_happened_at_some_time_before():
    """It holds the last code: 31 at first, and once more after a restart set it to 0."""
    case = case_of((0, 3600, WORK | {"xid_number": 31}), (3600, 7200, WORK | {"xid_number": 0}),
                   (7200, END, WORK | {"xid_number": 31}))  # fmt: skip
    assert case.ask(
        f"select epoch(seen_at)::bigint - {ZERO}, xid_number, kind_name, is_first_sample "
        "from mart.gpu_events order by 1"
    ) == [(30, 31, "application", True), (7230, 31, "application", False)]


def test_an_error_names_its_holder_unless_several_hold_instances_of_the_gpu():
    case = case_of((0, 3600, WORK | {"xid_number": 0}), (3600, END, WORK | {"xid_number": 31}))
    assert case.ask("select pod_name from mart.gpu_events") == [("p",)]
    unit = {"resource_name": "nvidia.com/mig-3g.40gb", "capacity_count": 2, "allocatable_count": 2,
            "share_micro_gpu": 500_000}  # fmt: skip
    case = Case(END)
    case.node("n", resources=[unit])
    for pod, instance in (("p", 1), ("q", 2)):
        asks = [{"resource_name": "nvidia.com/mig-3g.40gb", "request_count": 1}]
        case.pod(pod, "n", requests=asks)
        case.read("g", 0, 3600, pod=pod, instance=instance, sm_ratio=0.5, xid_number=0)
        case.read("g", 3600, END, pod=pod, instance=instance, sm_ratio=0.5, xid_number=31)
    assert case.ask("select xid_number, pod_name from mart.gpu_events") == [(31, None)]


def test_sight_tells_which_quantity_is_not_told_and_why():
    """The node tells no SM activity; another has no exporter at all."""
    case = case_of((0, END, {"utilisation_ratio": 0.5, "tensor_ratio": 0.1}))
    case.node("dark")
    rows = dict(case.ask(
        "select node_name || ' ' || metric_name, reason_text from mart.metric_sight "
        "where metric_name in ('any', 'sm_ratio', 'utilisation_ratio')"
    ))  # fmt: skip
    assert rows["n any"] is None and rows["n utilisation_ratio"] is None
    assert "PROF_SM_ACTIVE" in rows["n sm_ratio"]
    assert "no exporter" in rows["dark any"]
