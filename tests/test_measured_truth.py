"""A measured day in a real Prometheus, run to the end, against the truth: states, episodes, causes.

Once beside a recorder's streams and once from Prometheus alone. Sums of samples, later runs and
outages are in test_measured_sums.py.

A reading is up to 30 s old when it is scraped and a scrape comes every 30 s: what changes may be
told two samples late, so 60 s at each edge are not judged.
"""

from collections.abc import Iterator

import duckdb
import pytest

from lake.home import Home
from tests.measured_fleet import ALONE, BESIDE, Fleet, beside, run

CASES = [(1, "alpha"), (1, "beta"), (7, "alpha")]
pytestmark = pytest.mark.whole

# What no reading tells is unobserved, whatever the GPU did; only then the reading decides.
STATES = """
    create view nameless as
    select pod_uid, gpu_uuid, gi_id
    from (
        select pod_uid, gpu_uuid, gi_id, to_timestamp(min("begin")) as begin_at,
            to_timestamp(max("end")) as end_at
        from truth.gpu_states group by all
    ) as h
    where not exists (
        from raw.gpu_series as g where g.gpu_uuid = h.gpu_uuid
        and g.begin_at <= h.end_at and g.end_at >= h.begin_at
    );

    create view strangers as
    select node_uid, to_timestamp(min(g."begin")) as begin_at, to_timestamp(max(g."end")) as end_at
    from truth.gpu_states as g join truth.pods as p using (node_uid, pod_uid)
    where p.pod_name not in (select pod_name from raw.gpu_series)
    group by node_uid, pod_uid;

    create view expected as
    with told as (
        select t.*, n.pod_uid is not null as is_nameless,
            unobserved is not null and state in ('active', 'idle', 'stalled', 'loading') as is_blind
        from truth.gpu_states as t left join nameless as n using (pod_uid, gpu_uuid, gi_id)
    )
    select node_uid, pod_uid, gpu_uuid, gi_id, is_nameless,
        case when is_blind then 'unobserved' else state end as state,
        case when is_blind then unobserved else cause end as cause,
        to_timestamp("begin") + interval 60 second as begin_at,
        to_timestamp("end") - interval 60 second as end_at
    from told where is_scored = 1 and "end" - "begin" > 120
        and not (is_nameless and state = 'unavailable');

    create view found as
    with told as (
        select h.pod_uid, p.gpu_uuid, p.instance_number as gi_id, s.state_name as state,
            s.cause_name as cause, s.begin_at, s.end_at, p.is_shared
        from core.hold_states as s
        join core.hold_parts as p using (cluster_name, day_on, hold_id, part_number)
        join core.holds as h using (cluster_name, day_on, hold_id)
    )
    from told where gpu_uuid is not null
    union all by name
    select distinct n.gpu_uuid, n.gi_id, t.* exclude (gpu_uuid, gi_id)
    from told as t join nameless as n using (pod_uid) where t.gpu_uuid is null;
"""
"""A GPU that told nothing all the while that a pod had it (no exporter, or off the bus) is known to
the truth alone: there the pod's states must be right, and whether it is broken is not seen."""

# An idle GPU that tells no memory (MIG on A30) holds some or none: that is not determined. Where an
# exporter names one pod of several, one that it does not name may be at work on any shared GPU of
# the node: who works is then unobserved.
WRONG_STATES = """
    with memory as (
        select distinct gpu_uuid, instance_number as gi_id
        from raw.gpu_samples where memory_used_mib is not null
    ), pairs as (
        select e.*, f.state as found_state, f.cause as found_cause, f.is_shared,
            f.begin_at as found_begin_at, f.end_at as found_end_at, epoch(least(e.end_at, f.end_at))
            - epoch(greatest(e.begin_at, f.begin_at)) as seconds
        from expected as e left join found as f on e.pod_uid = f.pod_uid
            and e.gpu_uuid = f.gpu_uuid and e.gi_id = f.gi_id
            and e.begin_at < f.end_at and e.end_at > f.begin_at
    ), rights as (
        select b.pod_uid, b.gpu_uuid, b.gi_id, b.begin_at, sum(b.seconds) as seconds
        from pairs as b left join memory as m using (gpu_uuid, gi_id)
        where state = found_state and (
            cause = found_cause or (
                state = 'idle' and found_cause = 'undetermined' and m.gpu_uuid is null
            )
        ) or found_state = 'unobserved' and b.is_shared and exists (
            from strangers as s where s.node_uid = b.node_uid
            and s.begin_at < b.found_end_at and s.end_at > b.found_begin_at
        )
        group by all
    )
    select e.*, r.seconds as right_seconds, f.state as found_state, f.cause as found_cause,
        f.begin_at as found_begin_at, f.end_at as found_end_at
    from expected as e left join rights as r using (pod_uid, gpu_uuid, gi_id, begin_at)
    left join found as f on e.pod_uid = f.pod_uid and e.gpu_uuid = f.gpu_uuid
        and e.gi_id = f.gi_id and e.begin_at < f.end_at and e.end_at > f.begin_at
        and (e.state, e.cause) <> (f.state, f.cause)
    where r.seconds is distinct from epoch(e.end_at) - epoch(e.begin_at)
    order by all
"""

EPISODES = """
    create view true_episodes as
    select 'idle' as kind, pod_uid, gpu_uuid, gi_id, to_timestamp(since) as begin_at,
        coalesce(to_timestamp("end"), (select max(end_at) from core.windows)) as end_at,
        is_scored, is_cause_scored, likely_cause_name, true as is_certain
    from truth.idle_episodes
    union all by name
    select 'stalled' as kind, pod_uid, gpu_uuid, gi_id, to_timestamp("begin") as begin_at,
        to_timestamp("end") as end_at, is_scored, confidence = 'likely' as is_certain
    from truth.stalled_episodes;

    create view found_episodes as
    select episode_name as kind, pod_uid, gpu_uuid, instance_number as gi_id, begin_at, end_at,
        least_seconds, likely_cause_name, is_certain, evidence_text
    from mart.gpu_episodes;

    create view met as
    select t.kind, t.pod_uid, t.gpu_uuid, t.gi_id, t.begin_at as true_begin_at,
        f.begin_at, f.end_at, t.is_scored, t.is_cause_scored,
        t.is_certain = f.is_certain as is_sure,
        t.likely_cause_name as true_cause, f.likely_cause_name as cause, f.evidence_text,
        abs(epoch(t.begin_at) - epoch(f.begin_at)) <= 60
            and abs(epoch(t.end_at) - epoch(f.end_at)) <= 60 as is_exact
    from true_episodes as t join found_episodes as f using (kind, pod_uid, gpu_uuid, gi_id)
    where t.begin_at < f.end_at and t.end_at > f.begin_at;
"""

MISSED = """
    from true_episodes as t where is_scored = 1 and not exists (
        from met as m where is_exact and (m.kind, m.pod_uid, m.gpu_uuid, m.gi_id, m.true_begin_at)
            = (t.kind, t.pod_uid, t.gpu_uuid, t.gi_id, t.begin_at)
    ) order by all
"""

# Where two samples more or less decide, the truth does not judge: neither what is hardly long
# enough, nor the ends of what it does not score.
INVENTED = """
    from found_episodes as f
    where epoch(end_at) - epoch(begin_at) >= least_seconds + 60 and not exists (
        from met as m where (is_exact or is_scored = 0)
            and (m.kind, m.pod_uid, m.gpu_uuid, m.gi_id, m.begin_at)
            = (f.kind, f.pod_uid, f.gpu_uuid, f.gi_id, f.begin_at)
    ) order by all
"""

FINDINGS = """
    create view true_findings as
    select 'used_without_hold' as name, u.gpu_uuid as subject, u.gpu_uuid as gpus,
        coalesce(max(b."end"), u."begin") as begin, coalesce(min(e."begin"), u."end") as ended
    from truth.used_without_hold as u
    left join truth.gaps as b on u.gpu_uuid = b.gpu_uuid
        and u."begin" >= b."begin" and u."begin" < b."end"
    left join truth.gaps as e on u.gpu_uuid = e.gpu_uuid
        and u."end" > e."begin" and u."end" <= e."end"
    group by u.gpu_uuid, u."begin", u."end"
    union all by name
    select 'over_sized' as name, pod_uid as subject, unused_gpu_uuids as gpus,
        "begin" as begin, "end" as ended
    from truth.over_sized
    union all by name
    select 'nvlink_silent' as name, pod_uid as subject, "begin" as begin, "end" as ended
    from truth.nvlink_silent;

    create view found_findings as
    select finding_name as name,
        case when finding_name = 'used_without_hold' then gpu_uuids_text else subject_text end
            as subject,
        case when finding_name <> 'nvlink_silent' then gpu_uuids_text end as gpus,
        epoch(begin_at) as begin, epoch(end_at) as ended
    from mart.gpu_findings
    where finding_name in ('used_without_hold', 'over_sized', 'nvlink_silent');
"""

# Use without a hold is found from the end of a gap on, where it began in one. A pod's silent NVLink
# is told from its first second at work to its last, within the hold.
WRONG_FINDINGS = """
    from true_findings as t full join found_findings as f on t.name = f.name
        and t.subject = f.subject
        and list_sort(string_split(t.gpus, ' ')) is not distinct from
            list_sort(string_split(f.gpus, ' '))
        and case t.name
            when 'nvlink_silent' then f.begin >= t.begin - 60 and f.ended <= t.ended + 60
            else abs(t.begin - f.begin) <= 60 and abs(t.ended - f.ended) <= 60
        end
    where t.name is null or f.name is null order by all
"""


@pytest.fixture(scope="module")
def fleets(tmp_path_factory, prometheus) -> Iterator[dict[int, Fleet]]:
    found = {
        seed: Fleet(
            tmp_path_factory.mktemp(f"measured_{seed}"),
            prometheus,
            seed,
            *(cluster for number, cluster in CASES if number == seed),
        )
        for seed in dict.fromkeys(seed for seed, _ in CASES)
    }
    yield found
    for fleet in found.values():
        fleet.close()


@pytest.fixture(scope="module", params=CASES, ids=lambda case: f"{case[1]}-{case[0]}")
def case(request, fleets) -> tuple[Fleet, str]:
    seed, cluster = request.param
    return fleets[seed], cluster


@pytest.fixture(scope="module", params=[BESIDE, ALONE])
def con(request, case, tmp_path_factory) -> duckdb.DuckDBPyConnection:
    """The published tables and the truth."""
    fleet, cluster = case
    home = Home(tmp_path_factory.mktemp("home"))
    outcome = run(home, fleet.config(cluster, request.param), cluster)
    assert (outcome.broken, outcome.error, outcome.unreachable) == ([], None, [])
    assert outcome.snapshot is not None
    con = beside(home, fleet.truth(cluster, request.param))
    con.execute(STATES + EPISODES + FINDINGS)
    return con


def test_every_held_second_has_the_truths_state_and_cause(con):
    wrong = con.sql(WRONG_STATES)
    assert wrong.fetchall() == []
    judged = dict(con.execute("select state, count(*) from expected group by 1").fetchall())
    assert {"active", "idle", "loading", "unobserved"} <= judged.keys()
    assert sum(judged.values()) > 100


def test_every_idle_and_stalled_episode_is_found_and_none_is_invented(con):
    assert con.sql(MISSED).fetchall() == []
    assert con.sql(INVENTED).fetchall() == []
    assert con.sql("from met where is_scored = 1 and is_exact and not is_sure").fetchall() == []
    scored = "select kind, count(*) from true_episodes where is_scored = 1 group by 1"
    found = dict(con.execute(scored).fetchall())
    assert found["idle"] > 3 and found["stalled"] > 0


def test_the_likely_cause_is_right_in_nine_of_ten(con):
    told = "from met where is_cause_scored = 1 and is_exact"
    [(right, total)] = con.execute(
        f"select count(*) filter (where true_cause = cause), count(*) {told}"
    ).fetchall()
    wrong = con.execute(f"select * {told} and true_cause <> cause order by all").fetchall()
    assert total > 3
    assert right >= 0.9 * total, wrong


def test_what_was_used_unheld_over_sized_or_silent_on_nvlink_is_the_truths(con):
    assert con.sql(WRONG_FINDINGS).fetchall() == []
    assert con.execute("select count(*) from true_findings").fetchone() > (0,)


def test_every_error_that_the_gauge_shows_is_known_and_no_other(con):
    # A GPU that is off the bus tells what happened meanwhile once it is back.
    con.execute("""
        create view shown as
        select x.*, min(s.sampled_at) as first_at
        from truth.xids as x left join raw.gpu_samples as s on x.gpu_uuid = s.gpu_uuid
            and s.xid_number is not null and s.sampled_at >= to_timestamp(x.at)
        group by all
    """)
    met = """
        x.gpu_uuid = e.gpu_uuid and x.code = e.xid_number
        and epoch(e.seen_at) - epoch(x.first_at) between -1 and 60
    """
    unseen = f"""
        from shown as x where is_told = 1
        and not exists (from core.gpu_errors as e where {met})
    """
    invented = f"""
        from core.gpu_errors as e where not is_first_sample
        and not exists (from shown as x where {met})
    """
    assert con.sql(unseen).fetchall() == []
    assert con.sql(invented).fetchall() == []
    # What is fatal begins a fault.
    faultless = """
        from shown as x where is_told = 1 and kind = 'fatal' and not exists (
            from core.gpu_faults as f where x.gpu_uuid = f.gpu_uuid and x.code = f.xid_number
            and epoch(f.begin_at) - x.at between -60 and 60
        )
    """
    assert con.sql(faultless).fetchall() == []
