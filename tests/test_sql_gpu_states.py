"""What a GPU did, told by its samples: whole stretches by hand, in seconds of the hour.

Whose GPU it was and what a hold's state becomes of it is in test_sql_hold_parts; how samples are
read in test_dcgm. Samples come each half minute.
"""

from tests.sql_case import Case, Row, both

END = 3600
WORK: Row = {
    "sm_ratio": 0.7,
    "utilisation_ratio": 0.9,
    "memory_used_mib": 9000.0,
    "power_watts": 60.0,
}
QUIET: Row = WORK | {"sm_ratio": 0.004, "utilisation_ratio": 0.0, "power_watts": 27.0}
EMPTY: Row = QUIET | {"memory_used_mib": 4.0, "power_watts": 10.0}
SPIN: Row = WORK | {
    "sm_ratio": 0.15,
    "utilisation_ratio": 1.0,
    "tensor_ratio": 0.0,
    "dram_ratio": 0.01,
}


def case_of(*spells, seconds=END, **told):
    """A T4 that reads so from second to second; (begin, end, readings)."""
    case = Case(seconds)
    case.node("n")
    case.add_models()
    for begin, end, readings in spells:
        case.read("g", begin, end, **readings, **told)
    return case


def test_a_sample_speaks_for_the_time_since_the_one_before_it():
    """The last one, at 3600, ends the window; what is before the first half minute is its, too."""
    case = case_of((0, 1200, WORK), (1200, 2400, QUIET), (2400, END, WORK))
    assert case.doings("g") == [
        ("active", "none", 0, 1200),
        ("idle", "memory_held", 1200, 2400),
        ("active", "none", 2400, END),
    ]


def test_five_quiet_minutes_are_idle_and_less_is_a_pause():
    for length, found in ((270, "active"), (300, "idle")):
        case = case_of((0, 600, WORK), (600, 600 + length, QUIET), (600 + length, END, WORK))
        assert {name for name, *_ in case.doings("g")} == {"active", found}


def test_a_silence_neither_ends_a_quiet_stretch_nor_adds_to_it():
    """Two minutes are lost each six: four quiet ones before and after them are one stretch."""
    flaky = [(at, at + 240, QUIET) for at in range(0, END, 360)]
    assert {name for name, *_ in case_of(*flaky).doings("g")} == {"idle", "unobserved"}
    spin = [(at, at + 240, SPIN | {"power_watts": 28.0}) for at in range(0, END, 360)]
    assert {name for name, *_ in case_of(*spin).doings("g")} == {"stalled", "unobserved"}
    short = case_of((0, 1200, WORK), (1200, 1320, QUIET), (1800, 1920, QUIET), (1920, END, WORK))
    assert {name for name, *_ in short.doings("g")} == {"active", "unobserved"}


def test_sm_activity_of_one_per_cent_is_quiet_and_more_is_work():
    for sm, found in ((0.01, "idle"), (0.0101, "active")):
        case = case_of((0, END, QUIET | {"sm_ratio": sm}))
        assert case.doings("g")[0][0] == found


def test_without_sm_the_engine_decides_and_without_both_gpu_util_where_only_zero_is_quiet():
    bare = {"utilisation_ratio": 0.01, "memory_used_mib": 9000.0}
    assert case_of((0, END, bare)).doings("g")[0][0] == "active"
    assert case_of((0, END, bare | {"utilisation_ratio": 0.0})).doings("g")[0][0] == "idle"
    engine = bare | {"gr_engine_ratio": 0.009}
    assert case_of((0, END, engine)).doings("g")[0][0] == "idle"


def test_idle_tells_whether_memory_is_held_by_memory_else_by_power_else_not_at_all():
    lean = {"sm_ratio": 0.0}
    for more, cause in (
        ({"memory_used_mib": 200.0}, "memory_held"),
        ({"memory_used_mib": 199.0}, "empty"),
        ({"power_watts": 26.0}, "memory_held"),
        ({"power_watts": 12.0}, "empty"),
        ({}, "undetermined"),
    ):
        assert case_of((0, END, lean | more)).doings("g") == [("idle", cause, 0, END)]


def test_ten_minutes_of_kernels_without_tensor_dram_and_power_are_stalled_sm_or_not():
    spin = SPIN | {"power_watts": 30.0}
    case = case_of((0, 600, WORK), (600, 1200, spin), (1200, 1770, WORK), (1770, 2340, spin),
                   (2340, END, WORK))  # fmt: skip
    assert case.doings("g") == [
        ("active", "none", 0, 600),
        ("stalled", "none", 600, 1200),
        ("active", "none", 1200, END),
    ]
    assert case.ask("select bool_and(is_certain) from core.gpu_states") == [(True,)]


def test_power_above_rest_tensor_work_or_memory_traffic_is_no_stall():
    """Rest is 27 W and the limit 70: a tenth of the way from one to the other is 31.3 W."""
    for more in ({"power_watts": 31.4}, {"tensor_ratio": 0.021}, {"dram_ratio": 0.021},
                 {"utilisation_ratio": 0.94}):  # fmt: skip
        spin = SPIN | {"power_watts": 31.2} | more
        assert {name for name, *_ in case_of((0, END, spin)).doings("g")} == {"active"}
    assert case_of((0, END, SPIN | {"power_watts": 31.2})).doings("g")[0][0] == "stalled"


def test_gpu_util_and_power_alone_make_a_suspicion():
    spin = {"utilisation_ratio": 1.0, "power_watts": 28.0}
    case = case_of((0, END, spin))
    assert case.doings("g") == [("stalled", "none", 0, END)]
    assert case.ask("select bool_or(is_certain) from core.gpu_states") == [(False,)]


def test_without_any_power_nothing_is_called_stalled():
    spin = {name: value for name, value in SPIN.items() if name != "power_watts"}
    assert case_of((0, END, spin)).doings("g")[0][0] == "active"


def test_prof_that_reads_zero_while_power_is_drawn_has_stopped_counting():
    case = case_of((0, END, WORK | {"sm_ratio": 0.0, "power_watts": 65.0}))
    assert case.doings("g") == [("active", "none", 0, END)]


def test_a_silence_of_more_than_two_steps_is_unobserved_but_for_the_usual_time_before_a_sample():
    """At most a minute is bridged; the sample at 2430 speaks for 2400 on."""
    case = case_of((0, 1200, WORK), (1230, 1800, WORK), (2400, END, WORK))
    assert case.doings("g") == [
        ("active", "none", 0, 1800),
        ("unobserved", "exporter_down", 1800, 2400),
        ("active", "none", 2400, END),
    ]


def test_the_silence_of_one_gpu_is_its_own_while_another_of_the_node_is_read():
    case = case_of((0, 1200, WORK), (2400, END, WORK))
    case.read("h", 0, END, **WORK)
    assert case.doings("g")[1] == ("unobserved", "stale", 1200, 2400)


def test_samples_without_any_activity_are_no_measurement():
    case = case_of((0, 1800, {"power_watts": 50.0}), (1800, END, WORK))
    case.rows["raw.gpu_samples"][5]["rejected_count"] = 1
    assert case.doings("g") == [
        ("unobserved", "no_series", 0, 150),
        ("unobserved", "rejected", 150, 180),
        ("unobserved", "no_series", 180, 1800),
        ("active", "none", 1800, END),
    ]


def test_the_first_and_the_last_minute_of_a_day_are_told_by_samples_near_them():
    case = case_of((15, END - 45, WORK))
    assert case.doings("g") == [("active", "none", 0, END)]


def test_what_was_never_read_is_unobserved_to_both_sides():
    case = case_of((600, 1200, WORK))
    assert case.doings("g") == [
        ("unobserved", "exporter_down", 0, 600),
        ("active", "none", 600, 1200),
        ("unobserved", "exporter_down", 1200, END),
    ]


def test_a_rule_for_a_model_and_class_counts_before_one_for_all():
    case = case_of((0, 600, WORK), (600, 750, QUIET), (750, END, WORK))
    everyone = case.rows["raw.activity_rules"][0]
    case.rows["raw.activity_rules"] += [
        everyone | {"gpu_model_name": "t4", "idle_least_seconds": 120},
        everyone | {"gpu_model_name": "t4", "workload_class": "batch", "idle_least_seconds": 600},
    ]
    case._answering = None
    assert ("idle", "memory_held", 600, 750) in case.doings("g")
    assert case.ask("select workload_class, idle_least_seconds from core.gpu_rules") == [("*", 120)]


def test_rest_power_is_learned_on_the_gpu_and_else_on_its_model():
    """g rests at 33 W with a context and 14 W without; h, of the same model, is never quiet."""
    case = case_of(
        (0, 1200, QUIET | {"power_watts": 33.0}), (1200, 2400, EMPTY | {"power_watts": 14.0})
    )
    case.read("h", 0, END, node="n", **WORK)
    assert case.ask(
        "select gpu_uuid, bare_watts, context_watts, rest_source_name from core.gpus order by 1"
    ) == [("g", 14.0, 33.0, "gpu"), ("h", 14.0, 33.0, "model")]


def test_sums_of_sm_activity_are_kept_by_the_hour():
    case = case_of((0, 7200, WORK), seconds=7200)
    assert case.ask(
        "select sum(sm_seconds), round(sum(sm_active_seconds)), count(*) from core.gpu_states"
    ) == [(7200, 5040, 2)]


def test_a_fatal_error_breaks_a_gpu_until_its_driver_is_loaded_anew():
    """XID 48 is first seen at 630, so since 600; the new driver's first sample is at 1830."""
    case = case_of((0, 600, WORK | {"xid_number": 0}), (600, 1800, QUIET | {"xid_number": 48}))
    case.read("g", 1800, END, driver="590", **both(WORK, {"xid_number": 0}))
    assert case.doings("g") == [
        ("active", "none", 0, 600),
        ("broken", "gpu_unhealthy", 600, 1800),
        ("active", "none", 1800, END),
    ]
    assert case.ask("select xid_number, basis_name, is_ended from core.gpu_faults") == [
        (48, "xid", True)
    ]


def test_that_the_code_is_gone_mends_nothing_but_three_samples_at_work_do():
    case = case_of(
        (0, 600, WORK | {"xid_number": 0}),
        (600, 900, QUIET | {"xid_number": 48}),
        (900, 1800, QUIET | {"xid_number": 0}),
        (1800, END, WORK | {"xid_number": 0}),
    )
    assert ("broken", "gpu_unhealthy", 600, 1860) in case.doings("g")


def test_an_application_s_error_breaks_no_gpu():
    case = case_of((0, END, QUIET | {"xid_number": 31}))
    assert case.ask("select count(*) from core.gpu_faults") == [(0,)]


def test_a_gpu_that_falls_silent_while_the_plugin_misses_one_is_off_the_bus():
    """Cases without any XID exist: the driver lost it before it could tell."""
    case = case_of((0, 1200, WORK), (2400, END, WORK))
    case.rows["raw.node_versions"].clear()
    case.node("n", gpus=2)
    case.node("n", gpus=2, seen=1230, allocatable_micro_gpu=1_000_000)
    case.node("n", gpus=2, seen=2430)
    case.read("h", 0, END, **WORK)
    assert case.doings("g")[1] == ("broken", "gpu_unhealthy", 1200, 2400)


def test_silence_alone_is_no_fault():
    case = case_of((0, 1200, WORK), (2400, END, WORK))
    case.read("h", 0, END, **WORK)
    assert case.ask("select count(*) from core.gpu_faults") == [(0,)]
