"""What kube-state-metrics alone makes of states, waits and days, small enough to check by hand."""

from datetime import timedelta

from lake.create import create
from lake.home import Home
from lake.run import Run
from models.catalog import CATALOG
from models.config import Config
from models.window import Window
from pipelines.carry import carry
from pipelines.collect import DAILY
from tests.kube_state_case import DAY, MIDNIGHT, OLD, Told, broken, computed, node, pod

CONFIG = Config.model_validate({"clusters": [{"name": "c"}]})
START = "kube_pod_container"


def states(con, uid):
    return con.execute(
        f"select state_name, cause_name, epoch(begin_at)::bigint - {MIDNIGHT}, "
        f"epoch(end_at)::bigint - {MIDNIGHT} from core.hold_states "
        f"where split_part(hold_id, '/', 1) = '{uid}' order by begin_at"
    ).fetchall()


def test_a_pod_pulls_runs_and_is_asked_to_go():
    told = Told()
    node(told)
    labels = pod(told, end=2500)
    main = labels | {"container": "main"}
    told.tell("kube_pod_status_scheduled_time", MIDNIGHT + 100, 120, 2500, **labels)
    told.tell(f"{START}_status_waiting_reason", 1, 120, 300, reason="ErrImagePull", **main)
    told.tell(f"{START}_status_running", 1, 300, 2500, **main)
    told.tell(f"{START}_state_started", MIDNIGHT + 280, 300, 2500, **main)
    told.tell("kube_pod_deletion_timestamp", MIDNIGHT + 9000, 2400, 2500, **labels)
    con = computed(CONFIG, told.read().tables)
    assert states(con, "p") == [
        ("starting", "undetermined", 100, 150),
        ("starting", "image_pull", 150, 280),
        ("unobserved", "no_series", 280, 2430),
        ("terminating", "none", 2430, 2550),
    ]
    assert broken(con) == []


def test_time_without_scrapes_is_unrecorded_where_nobody_is_known_to_hold():
    told = Told()
    told.away(600, 1200)
    node(told)
    main = pod(told) | {"container": "main"}
    told.tell(f"{START}_status_running", 1, **main)
    told.tell(f"{START}_state_started", OLD, **main)
    con = computed(CONFIG, told.read().tables)
    found = con.execute(
        "select state_name, cause_name, sum(gpu_seconds)::bigint from core.ledger group by all "
        "order by all"
    ).fetchall()
    assert found == [
        ("unallocated", "no_demand", 3570 - 660),
        ("unobserved", "no_series", 3570),
        ("unrecorded", "recorder_gap", 660),
    ]
    assert broken(con) == []


def test_a_pod_holds_over_midnight_and_the_laws_hold_on_both_days(tmp_path):
    told = Told(end=2 * 86_400)
    node(told)
    labels = pod(told, end=90_000)
    told.tell("kube_pod_status_scheduled_time", OLD, end=90_000, **labels)
    pod(told, "late", begin=86_400, created=MIDNIGHT + 86_380)
    rows = told.read(*range(3600, 2 * 86_400, 3600), days=2).tables
    create(Home(tmp_path), "UTC", "USD")
    run = Run(Home(tmp_path), "run", Window("c", DAY, DAY + timedelta(days=2), "UTC"))
    for table in CATALOG.values():
        if table.layer == "raw":
            run.begin(table)
    for table in DAILY:
        run.append(table, rows[table.name])
    carry(run, DAY)
    with run.connect() as staged:
        rows |= {table.name: staged.sql(f"from {table.name}").pl() for table in DAILY}
    con = computed(CONFIG, rows)
    found = con.execute(
        f"select pod_uid, epoch(begin_at)::bigint - {MIDNIGHT}, "
        f"epoch(end_at)::bigint - {MIDNIGHT} from core.holds order by all"
    ).fetchall()
    assert found == [
        ("late", 86_430, 172_800),
        ("p", 30, 86_400),
        ("p", 86_400, 90_030),
    ]
    assert broken(con) == []
