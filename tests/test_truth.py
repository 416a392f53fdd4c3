"""The simulator's truth against the ledger: seconds, money and waits, with no code between them."""

from pathlib import Path

import duckdb
import pytest

import simulator
from lake.home import Home
from lake.read import Door
from models.config import load
from pipelines.process import process

SEEDS = (1,)
ALL_SEEDS = (1, 7, 11)

HELD = """
    select b.node_uid, n.gpu_model_name,
        epoch_us(greatest(b.begin_at, s.begin_at)) // 1000000 as begun,
        epoch_us(least(b.end_at, s.end_at)) // 1000000 as ended,
        h.team_name as holder, h.workload_key_uid as workload, s.state_name, s.cause_name,
        b.share_micro_gpu as micro
    from core.bookings as b
    join core.hold_states as s on b.cluster_name = s.cluster_name and b.day_on = s.day_on
        and b.hold_id = s.hold_id and b.begin_at < s.end_at and b.end_at > s.begin_at
    join core.holds as h on b.cluster_name = h.cluster_name and b.day_on = h.day_on
        and b.hold_id = h.hold_id
    join core.gpu_spells as n on b.cluster_name = n.cluster_name and b.day_on = n.day_on
        and b.node_uid = n.node_uid
    where b.cluster_name = 'CLUSTER' and b.share_micro_gpu > 0
    union all
    select u.node_uid, n.gpu_model_name, epoch_us(u.begin_at) // 1000000,
        epoch_us(u.end_at) // 1000000, u.team_name, '', u.state_name, u.cause_name,
        u.share_micro_gpu
    from core.unheld_states as u
    join core.gpu_spells as n on u.cluster_name = n.cluster_name and u.day_on = n.day_on
        and u.node_uid = n.node_uid
    where u.cluster_name = 'CLUSTER'
"""

# Two multisets of intervals are equal at each second if their edges cancel out, key by key.
DIFFERENCE = """
    with edges as (
        select * exclude (begun, ended), begun as edge, 1 as step from ours
        union all by name
        select * exclude (begun, ended), ended as edge, -1 as step from ours
        union all by name
        select * exclude (begun, ended), begun as edge, -1 as step from truth
        union all by name
        select * exclude (begun, ended), ended as edge, 1 as step from truth
    )
    select * exclude step, sum(step) as net from edges group by all having sum(step) <> 0
"""

COSTS = """
    select node_uid, epoch_us(hour_at) // 1000000 as hour, team_name as holder,
        coalesce(workload_key_uid, '') as workload, state_name, cause_name,
        coalesce(split_part(hold_id, '/', 1), '') as pod,
        (1000000 * ledger_cost)::bigint as micro
    from core.ledger where cluster_name = 'CLUSTER'
"""

STARTUPS = """
    select node_uid, gpu_model_name, team_name as holder, state_name, cause_name,
        (1000000 * sum(gpu_seconds))::bigint as micro, (1000000 * sum(startup_cost))::bigint as cost
    from mart.startups where cluster_name = 'CLUSTER' group by all
"""

GANGS = """
    select finding_name as finding, f.workload_key_uid as workload,
        epoch_us(since_at) // 1000000 as begun, epoch_us(max(f.end_at)) // 1000000 as ended,
        string_agg(distinct m.pod_name, ' ' order by m.pod_name) as members
    from mart.workload_findings as f
    inner join mart.finding_members as m
        using (cluster_name, day_on, finding_name, subject_text, team_name, since_at)
    where cluster_name = 'CLUSTER' and m.gpu_seconds > 0 and finding_name in
        ('gang_partial', 'gang_deadlock', 'gang_livelock', 'rendezvous_wait')
    group by all
"""

WAITS = """
    select workload_key_uid as workload, queue_name, epoch_us(queued_at) // 1000000 as queued,
        epoch_us(admitted_at) // 1000000 as admitted, epoch_us(placed_at) // 1000000 as placed,
        epoch_us(started_at) // 1000000 as started,
        case when placed_at is null then epoch_us(ended_at) // 1000000 end as departed
    from core.attempts where cluster_name = 'CLUSTER'
    qualify row_number() over (partition by attempt_id order by day_on desc) = 1
"""


@pytest.fixture(scope="module", params=[("tiny", 2), ("layouts", 1)], ids=["fleet", "layouts"])
def lakes(request, tmp_path_factory, full_size):
    size, days = request.param
    seeds = ALL_SEEDS if full_size and size == "tiny" else SEEDS
    found = []
    for seed in seeds:
        folder = tmp_path_factory.mktemp(f"{size}_{seed}")
        config = load(simulator.build(folder, seed=seed, days=days, size=size))
        home = Home(folder / "home")
        for cluster in config.clusters:
            outcome = process(home, config, cluster.name)
            assert (outcome.broken, outcome.error) == ([], None)
        found.append(folder)
    return found


def clusters(lakes: list[Path], query: str):
    """For each cluster of each lake: a connection with our rows as `ours`, and the truth."""
    for folder in lakes:
        with Door(Home(folder / "home")) as door:
            for truth in sorted((folder / "truth").iterdir()):
                con = duckdb.connect()
                con.register("rows", door.query(query.replace("CLUSTER", truth.name)).pl())
                con.execute("create table ours as from rows")
                yield con, truth


def test_every_second_of_every_gpu_has_the_holder_state_and_share_of_the_truth(lakes):
    for con, truth in clusters(lakes, HELD):
        con.execute(
            "create table truth as select node_uid, gpu_model as gpu_model_name, "
            "begin as begun, \"end\" as ended, holder, coalesce(workload, '') as workload, "
            "case when state in ('active', 'idle', 'stalled') then 'unobserved' else state end "
            "as state_name, cause as cause_name, micro_gpu as micro "
            f"from read_csv('{truth}/ledger.csv')"
        )
        [(rows,)] = con.execute("select count(*) from truth").fetchall()
        assert rows > 100
        assert con.execute(DIFFERENCE).fetchall() == []


def test_money_is_the_truths_to_the_micro_unit(lakes):
    for con, truth in clusters(lakes, COSTS):
        con.execute(
            "create table truth as select node_uid, hour, holder, "
            "coalesce(workload, '') as workload, "
            "case when state in ('active', 'idle', 'stalled') then 'unobserved' else state end "
            "as state_name, cause as cause_name, coalesce(pod_uid::varchar, '') as pod, "
            f"cost_micro as micro from read_csv('{truth}/cost.csv')"
        )
        summed = "select * exclude micro, sum(micro) as micro from {} group by all"
        ours, theirs = summed.format("ours"), summed.format("truth")
        assert con.execute(f"({ours}) except all ({theirs})").fetchall() == []
        assert con.execute(f"({theirs}) except all ({ours})").fetchall() == []


def test_what_is_held_before_it_works_is_the_truths_in_time_and_money(lakes):
    for con, truth in clusters(lakes, STARTUPS):
        con.execute(
            "create table truth as from (select node_uid, gpu_model as gpu_model_name, holder, "
            "state as state_name, cause as cause_name, "
            'sum(micro_gpu * ("end" - begin))::bigint as micro '
            f"from read_csv('{truth}/ledger.csv') group by all) "
            "left join (select node_uid, holder, state as state_name, cause as cause_name, "
            "sum(cost_micro)::bigint as cost "
            f"from read_csv('{truth}/cost.csv') group by all) "
            "using (node_uid, holder, state_name, cause_name) "
            "where state_name in ('starting', 'gang_wait', 'loading')"
        )
        columns = "node_uid, gpu_model_name, holder, state_name, cause_name, micro, cost"
        ours, theirs = f"select {columns} from ours", f"select {columns} from truth"
        assert con.execute(f"({ours}) except all ({theirs})").fetchall() == []
        assert con.execute(f"({theirs}) except all ({ours})").fetchall() == []


def test_gangs_that_stall_are_found_as_the_truth_has_them(lakes):
    found = set()
    for con, truth in clusters(lakes, GANGS):
        con.execute(
            "create table truth as select finding, workload, begin::bigint as begun, "
            '"end"::bigint as ended, members '
            f"from read_csv('{truth}/gangs.csv', all_varchar = true) where ended - begun > "
            "case finding when 'gang_livelock' then 0 when 'rendezvous_wait' then 300 else 120 end"
        )
        assert con.execute("from ours except all from truth").fetchall() == []
        assert con.execute("from truth except all from ours").fetchall() == []
        found |= set(con.execute("select distinct finding from ours").fetchall())
    assert len(found) in (0, 4)  # where only layouts are of interest no gang stalls


def test_every_wait_is_the_truths(lakes):
    for con, truth in clusters(lakes, WAITS):
        con.execute(
            "create table truth as select workload, coalesce(queue, '__none__') as queue_name, "
            "queued_at as queued, admitted_at as admitted, placed_at as placed, "
            "started_at as started, case when placed_at is null then ended_at end as departed, "
            f"ended_at from read_csv('{truth}/waits.csv')"
        )
        # What ended before anyone looked has no row.
        con.execute(
            "delete from truth where ended_at < (select min(begun) from "
            f"(select begin as begun from read_csv('{truth}/ledger.csv')))"
        )
        con.execute("alter table truth drop ended_at")
        assert con.execute("from ours except all from truth").fetchall() == []
        assert con.execute("from truth except all from ours").fetchall() == []
