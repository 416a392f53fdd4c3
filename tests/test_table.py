"""What a trace in tables becomes, and how a mapping that does not fit is told."""

from collections import Counter
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import polars as pl
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collectors.source import Settings, Unreadable
from collectors.sources import ALL
from collectors.table import collect, span
from models import raw
from models.config import TableSource, load
from models.config_errors import ConfigError
from models.window import Window

EXAMPLES = Path(__file__).parents[1] / "examples"
EPOCH = datetime(2026, 3, 1, tzinfo=UTC)
MAPPING = {
    "time": {"unit": "s", "epoch": EPOCH},
    "window": {"from": 0, "to": 259_200},
    "nodes": {
        "file": "nodes.csv",
        "columns": {
            "id": "sn",
            "gpu_count": "gpus",
            "gpu_model": "model",
            "cpu": {"column": "cores", "unit": "core"},
            "memory": {"column": "gib", "unit": "gib"},
        },
    },
    "pods": {
        "file": "pods.csv",
        "columns": {
            "id": "name",
            "created": "made",
            "bound": "placed",
            "ended": "gone",
            "phase": "phase",
            "gpu_count": "num_gpu",
            "gpu_milli": "milli",
            "team": {"template": "team-{dept}"},
        },
    },
}
NODES = "sn,gpus,model,cores,gib\nn1,8,V100M32,96,512\nn2,0,,32,128\n"
PODS = """name,made,placed,gone,phase,num_gpu,milli,dept
whole,0,0,90000,Succeeded,2,1000,a
part,60,120,200,Running,1,250,b
never,60,,86460,Pending,1,1000,a
cpu,60,70,,Running,0,0,a
"""


@pytest.fixture
def trace(tmp_path):
    def write(pods=PODS, nodes=NODES, change=None, **told):
        mapping = yaml.safe_load(yaml.safe_dump(MAPPING))
        (change or (lambda m: None))(mapping)
        (tmp_path / "mapping.yaml").write_text(yaml.safe_dump(mapping))
        (tmp_path / "pods.csv").write_text(pods)
        (tmp_path / "nodes.csv").write_text(nodes)
        return tmp_path, Settings("t", mapping=tmp_path / "mapping.yaml", **told)

    return write


def read(given_trace, window=None):
    path, told = given_trace
    found = {}
    for batch in collect(path, told, window):
        found.setdefault(batch.table, []).extend(batch.frame.to_dicts())
    return found


def of(found, uid):
    return [row for row in found["raw.pod_versions"] if row["pod_uid"] == uid]


def after(seconds):
    return EPOCH + timedelta(seconds=seconds)


def refusals(found):
    counts = Counter()
    for row in found.get("raw.rejections", []):
        if row["reason_name"] not in raw.NOTICES:
            counts[row["reason_name"]] += row["rejected_count"]
    return counts


def test_a_pod_is_seen_when_it_is_made_when_it_is_bound_and_when_it_ends(trace):
    rows = of(read(trace()), "part")
    assert [(r["change_name"], r["phase_name"], r["observed_at"]) for r in rows] == [
        ("ADDED", "Pending", after(60)),
        ("MODIFIED", "Running", after(120)),
        ("DELETED", "Running", after(200)),
    ]
    assert [row["bound_at"] for row in rows] == [None, after(120), after(120)]
    assert {row["source_ref"] for row in rows} == {"pods.csv:3"}


def test_a_pod_that_succeeded_ends_by_itself_on_the_day_of_its_end(trace):
    *_, last = of(read(trace()), "whole")
    assert (last["change_name"], last["phase_name"]) == ("MODIFIED", "Succeeded")
    assert (last["finished_at"], last["day_on"]) == (after(90_000), date(2026, 3, 2))


def test_a_bind_at_second_0_is_a_bind(trace):
    assert of(read(trace()), "whole")[1]["bound_at"] == EPOCH


def test_a_pod_never_placed_ends_unserved(trace):
    rows = of(read(trace()), "never")
    assert [row["change_name"] for row in rows] == ["ADDED", "DELETED"]
    assert rows[-1]["bound_at"] is None


def test_a_pod_that_has_not_ended_stays(trace):
    assert [row["change_name"] for row in of(read(trace()), "cpu")] == ["ADDED", "MODIFIED"]


def test_gpus_are_asked_for_in_thousandths(trace):
    found = read(trace())
    asked = {uid: of(found, uid)[0]["requests"] for uid in ("whole", "part", "cpu")}
    assert asked == {
        "whole": [{"resource_name": "milli-gpu", "request_count": 2000}],
        "part": [{"resource_name": "milli-gpu", "request_count": 250}],
        "cpu": [],
    }


def test_a_team_is_made_of_columns(trace):
    assert of(read(trace()), "part")[0]["team_name"] == "team-b"


def test_no_container_s_start_is_known_unless_a_column_tells_it(trace):
    assert not of(read(trace()), "part")[0]["is_start_known"]

    def started(mapping):
        mapping["pods"]["columns"]["started"] = "placed"

    rows = of(read(trace(change=started)), "part")
    assert all(row["is_start_known"] for row in rows)
    assert [row["running_since_at"] for row in rows] == [None, None, after(120), after(120)]
    assert rows[-1]["stopped_at"] == after(200)


def test_nodes_stand_from_the_window_s_begin(trace):
    first, second = read(trace())["raw.node_versions"]
    assert (first["gpu_model_name"], first["gpu_count"]) == ("v100-32gb", 8)
    assert (first["observed_at"], first["created_at"]) == (EPOCH, None)
    assert (first["cpu_milli_count"], first["memory_mib"]) == (96_000, 524_288)
    assert first["resources"][0]["share_micro_gpu"] == 1000
    assert (second["gpu_model_name"], second["resources"]) == ("__unknown__", [])


def test_the_known_window_is_what_the_mapping_states(trace):
    assert span(*trace()) == (EPOCH, after(259_200))
    rows = read(trace())["raw.coverage"]
    assert [row["day_on"].day for row in rows] == [1, 2, 3]
    assert {(row["coverage_name"], row["is_placed"]) for row in rows} == {("table", False)}


@pytest.mark.parametrize(
    "begin", [EPOCH, EPOCH.date(), datetime(2026, 3, 1, 9, tzinfo=ZoneInfo("Asia/Tokyo"))]
)
def test_a_window_of_clock_times_needs_no_quotes(begin, trace):
    def clock(mapping):
        mapping["time"], mapping["window"] = {"zone": "UTC"}, {"from": begin, "to": after(86_400)}

    assert span(*trace(change=clock)) == (EPOCH, after(86_400))


def test_pods_are_placed_where_a_column_names_their_node(trace):
    def placed(mapping):
        mapping["pods"]["columns"]["node"] = "dept"

    found = read(trace(change=placed))
    assert [row["node_name"] for row in of(found, "part")] == [None, "b", "b"]
    assert {row["is_placed"] for row in found["raw.coverage"]} == {True}


def test_what_began_before_the_window_is_seen_at_its_begin(trace):
    def late(mapping):
        mapping["window"]["from"] = 86_400

    rows = of(read(trace(change=late)), "whole")
    assert [row["observed_at"] for row in rows] == [after(86_400), after(86_400), after(90_000)]
    assert rows[0]["created_at"] == EPOCH
    assert refusals(read(trace(change=late))) == {"outside_window": 1}


def test_an_end_at_the_window_s_very_end_belongs_to_its_last_day(trace):
    def short(mapping):
        mapping["window"]["to"] = 86_400

    pods = "name,made,placed,gone,phase,num_gpu,milli,dept\nx,0,0,86400,Running,1,1000,a\n"
    rows = of(read(trace(pods=pods, change=short)), "x")
    assert [row["day_on"].day for row in rows] == [1, 1, 1]


def test_a_day_read_alone_has_the_same_rows_as_in_a_longer_window(trace):
    given_trace = trace()
    whole = read(given_trace)
    for day in (1, 2, 3):
        window = Window("t", date(2026, 3, day), date(2026, 3, day) + timedelta(days=1))
        alone = read(given_trace, window)
        for table, rows in whole.items():
            assert alone.get(table, []) == [r for r in rows if r["day_on"].day == day], table


def test_rows_that_cannot_be_used_are_counted_by_their_reason(trace):
    pods = PODS + "".join(
        f"{row}\n"
        for row in (
            "whole,0,0,1,Running,1,1000,a",
            ",0,0,1,Running,1,1000,a",
            "b1,0,soon,1,Running,1,1000,a",
            "b2,0,0,1,Running,some,1000,a",
            "b3,5,4,9,Running,1,1000,a",
            "b4,5,6,3,Running,1,1000,a",
            "b5,,6,9,Running,1,1000,a",
            "b6,5,6,9,Running,-1,1000,a",
            "b7,999999,,,Running,1,1000,a",
            "b8,5,6,9,Running,,1000,a",
        )
    )
    found = read(trace(pods=pods))
    assert refusals(found) == {
        "duplicate_uid": 1,
        "no_uid": 1,
        "bad_column_value": 3,
        "placed_before_created": 1,
        "negative_duration": 1,
        "no_creation": 1,
        "negative_quantity": 1,
        "outside_window": 1,
    }
    assert {row["pod_uid"] for row in found["raw.pod_versions"]} == {
        "whole",
        "part",
        "never",
        "cpu",
    }
    [row] = [r for r in found["raw.rejections"] if r["reason_name"] == "duplicate_uid"]
    assert row["example_text"] == "pods.csv:6 whole"


def test_columns_that_the_mapping_does_not_use_are_noted(trace):
    pods = PODS.replace("dept", "dept,colour,shape").replace(",a\n", ",a,red,round\n")
    rows = read(trace(pods=pods.replace(",b\n", ",b,,\n")))["raw.rejections"]
    assert [(r["reason_name"], r["example_text"]) for r in rows] == [
        ("unknown_column", "colour, shape")
    ]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda m: m["pods"]["columns"].update(created="maid"),
            "pods.columns.created: pods.csv has no column maid; the nearest one is made",
        ),
        (
            lambda m: m["pods"]["columns"].update(team={"template": "{deptt}"}),
            "pods.columns.team: pods.csv has no column deptt; the nearest one is dept",
        ),
        (
            lambda m: m["pods"]["columns"].update(crated="made"),
            "pods.columns.crated: unknown key; the nearest valid one is created",
        ),
        (
            lambda m: m["pods"]["columns"].update(cpu={"column": "milli", "unit": "s"}),
            "pods.columns.cpu.unit: s does not fit",
        ),
        (
            lambda m: m["pods"]["columns"].update(cpu={"column": "milli", "unit": "horses"}),
            "pods.columns.cpu.unit: is no unit",
        ),
        (
            lambda m: m["pods"]["columns"].update(cpu={"unit": "core"}),
            "needs one of column, constant, template",
        ),
        (lambda m: m["window"].update(to=0), "window: `to` is not after `from`"),
        (lambda m: m["window"].update(to="soon"), "window: 'soon' is no time as `time` says"),
        (lambda m: m["time"].pop("epoch"), "needs epoch (for numbers) or zone"),
        (lambda m: m.pop("pods"), "pods: is missing"),
    ],
)
def test_a_mapping_that_does_not_fit_is_told_with_its_key(trace, change, words):
    with pytest.raises(ConfigError) as caught:
        read(trace(change=change))
    assert words in str(caught.value)
    assert "mapping.yaml: " in str(caught.value)


def test_a_file_that_is_not_there_and_one_that_is_broken_are_told(trace):
    path, told = trace()
    (path / "pods.csv").unlink()
    with pytest.raises(Unreadable, match=r"pods\.csv: is not there"):
        read((path, told))
    broken = trace(pods="name,made,placed,gone,phase,num_gpu,milli,dept\na,b,c,d,e,f,g,h,i,j\n")
    with pytest.raises(Unreadable, match=r"pods\.csv"):
        read(broken)


def test_clock_times_are_of_the_zone_that_the_mapping_names(trace):
    def clocks(mapping):
        mapping["time"] = {"zone": "Asia/Shanghai", "format": "%Y-%m-%d %H:%M:%S"}
        mapping["window"] = {"from": "2026-03-01 00:00:00", "to": "2026-03-02 00:00:00"}

    pods = (
        "name,made,placed,gone,phase,num_gpu,milli,dept\n"
        "x,2026-03-01 08:00:00,2026-03-01 08:00:30,,Running,1,1000,a\n"
        "y,yesterday,,,Running,1,1000,a\n"
    )
    found = read(trace(pods=pods, change=clocks))
    assert of(found, "x")[1]["bound_at"] == datetime(2026, 3, 1, 0, 0, 30, tzinfo=UTC)
    assert refusals(found) == {"bad_column_value": 1}


def test_times_in_milliseconds_and_with_fractions_are_exact(trace):
    def millis(mapping):
        mapping["time"]["unit"] = "ms"
        mapping["window"]["to"] = 86_400_000

    pods = "name,made,placed,gone,phase,num_gpu,milli,dept\nx,1,1500.5,,Running,1,1000,a\n"
    rows = of(read(trace(pods=pods, change=millis)), "x")
    assert [row["observed_at"] for row in rows] == [after(0.001), after(1.5005)]


def test_parquet_is_read_like_csv(trace, tmp_path):
    def parquet(mapping):
        mapping["pods"]["file"] = "pods.parquet"

    given_trace = trace(change=parquet)
    pl.read_csv(tmp_path / "pods.csv").write_parquet(tmp_path / "pods.parquet")
    rows = of(read(given_trace), "part")
    assert [row["observed_at"] for row in rows] == [after(60), after(120), after(200)]


def test_values_become_the_words_that_the_mapping_puts_for_them(trace):
    def classes(mapping):
        words = {"column": "dept", "values": {"a": "training"}, "default": "batch"}
        mapping["pods"]["columns"] |= {
            "workload_class": words,
            "workload_kind": {"constant": "Job"},
            "workload_name": "dept",
            "labels": {"example.com/dept": "dept"},
        }

    found = read(trace(change=classes))
    row = of(found, "part")[0]
    assert (row["workload_class"], of(found, "cpu")[0]["workload_class"]) == ("batch", "training")
    assert row["workload_key_uid"] == "Job/default/b"
    assert row["labels_json"] == '{"example.com/dept":"b"}'


ANY = st.text(st.characters(codec="ascii", exclude_characters='",\n\r'), max_size=6)
CELL = ANY | st.integers(-10, 300_000).map(str)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(rows=st.lists(st.tuples(CELL, CELL, CELL, CELL, CELL, CELL, CELL, CELL), max_size=8))
def test_every_row_is_used_or_counted(trace, rows):
    text = PODS + "".join(",".join(("~", *row)[1:]) + "\n" for row in rows)
    found = read(trace(pods=text))
    used = {row["source_ref"] for row in found["raw.pod_versions"]}
    assert len(used) + sum(refusals(found).values()) == 4 + len(rows)


def test_the_public_trace_gives_its_nodes_its_gpus_and_its_pods(traces):
    config = load(EXAMPLES / "openb/gpuledger.yaml")
    source = config.clusters[0].sources[0]
    assert isinstance(source, TableSource)
    source = source.model_copy(update={"path": traces / "openb-gpu-2023"})
    frames = {}
    for batch in ALL["table"].collect(source, Settings("openb"), None):
        frames.setdefault(batch.table, []).append(batch.frame)
    nodes, pods = (pl.concat(frames[f"raw.{kind}_versions"]) for kind in ("node", "pod"))
    assert (nodes.height, nodes["gpu_count"].sum(), (nodes["gpu_count"] > 0).sum()) == (
        1523,
        6212,
        1213,
    )
    each = pods.group_by("pod_uid").agg(
        pl.col("bound_at").max(), pl.col("requests").first().list.len()
    )
    assert each.height == 8152
    assert (each["requests"] > 0).sum() == 7064
    assert each["bound_at"].null_count() == 897
