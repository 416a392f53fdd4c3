"""The laws: sums that must agree to the last digit. A window that breaks one is not published.

What each single row must keep (bounds, grain, not null) comes from the contracts in `models`.
"""

from typing import NamedTuple

from lake.run import Run
from models.catalog import CATALOG


class Law(NamedTuple):
    """A law: a query that counts its breaches; none may be found."""

    name: str
    table: str
    doc: str
    breaches: str


def tiling(table: str) -> str:
    """The breaches of: its stretches cover each hold's piece of the day, no gap, no overlap."""
    return f"""
        with covered as (
            select hold_id, day_on, sum(date_diff('second', begin_at, end_at)) as seconds,
                min(begin_at) as begin_at, max(end_at) as end_at
            from {table} group by all
        )
        select count(*) from core.holds as h left join covered as c using (hold_id, day_on)
        where c.seconds is distinct from date_diff('second', h.begin_at, h.end_at)
            or c.begin_at <> h.begin_at or c.end_at <> h.end_at
    """


LAWS = (
    Law(
        "time_is_conserved",
        "core.ledger",
        "Per node and hour the ledger's GPU-seconds are those installed in it.",
        """
        with hours as (
            select cluster_name, day_on, node_uid, installed_micro_gpu, begin_at, end_at,
                timezone($zone, day_on::timestamp) as midnight_at,
                unnest(range(
                    date_diff('second', midnight_at, begin_at) // 3600,
                    (date_diff('second', midnight_at, end_at) - 1) // 3600 + 1
                )) as hour_number
            from core.node_spells
        ), installed as (
            select cluster_name, node_uid, midnight_at + to_hours(hour_number) as hour_at,
                sum(installed_micro_gpu::hugeint * date_diff('second',
                    greatest(begin_at, midnight_at + to_hours(hour_number)),
                    least(end_at, midnight_at + to_hours(hour_number + 1)))) as micro
            from hours group by all
        ), booked as (
            select cluster_name, node_uid, hour_at,
                (1000000 * sum(gpu_seconds))::hugeint as micro
            from core.ledger group by all
        )
        select count(*) from installed full join booked using (cluster_name, node_uid, hour_at)
        where coalesce(installed.micro, 0) <> coalesce(booked.micro, 0)
        """,
    ),
    Law(
        "installed_follows_the_nodes",
        "core.node_spells",
        "The spells of each node add up to what is installed on it while it exists.",
        """
        with spells as (
            select cluster_name, day_on, node_uid,
                sum(installed_micro_gpu::hugeint * date_diff('second', begin_at, end_at)) as micro
            from core.node_spells group by all
        ), installed as (
            select g.cluster_name, g.day_on, g.node_uid,
                sum(g.installed_count::hugeint * 1000000
                    * date_diff('second', g.begin_at, g.end_at)) as micro
            from core.gpu_spells as g group by all
        )
        select count(*) from installed left join spells using (cluster_name, day_on, node_uid)
        where installed.micro <> coalesce(spells.micro, 0)
        """,
    ),
    Law(
        "holds_are_booked_or_unbooked",
        "core.unbooked",
        "Of each hold: its GPU-seconds are those booked and those unbooked.",
        """
        with held as (
            select hold_id, day_on,
                sum(share_micro_gpu::hugeint * date_diff('second', begin_at, end_at)) as micro
            from core.hold_shares group by all
        ), parts as (
            select hold_id, day_on,
                sum(share_micro_gpu::hugeint * date_diff('second', begin_at, end_at)) as micro
            from (
                select hold_id, day_on, share_micro_gpu, begin_at, end_at from core.bookings
                union all
                select hold_id, day_on, share_micro_gpu, begin_at, end_at from core.unbooked
            ) group by all
        )
        select count(*) from held full join parts using (hold_id, day_on)
        where coalesce(held.micro, 0) <> coalesce(parts.micro, 0)
        """,
    ),
    Law(
        "shares_tile_the_holds",
        "core.hold_shares",
        "The shares of each hold cover its piece of the day, without gap or overlap.",
        tiling("core.hold_shares"),
    ),
    Law(
        "parts_are_the_hold",
        "core.hold_parts",
        "The parts of each hold are its units, each once.",
        """
        with parts as (
            select hold_id, day_on, sum(last_unit_count - first_unit_count) as units,
                count(distinct first_unit_count) as part_count, count(*) as row_count,
                min(first_unit_count) as first, max(last_unit_count) as last
            from core.hold_parts group by all
        )
        select count(*) from core.holds as h left join parts as p using (hold_id, day_on)
        where p.units is distinct from h.request_count or p.first <> 0
            or p.last <> h.request_count or p.part_count <> p.row_count
        """,
    ),
    Law(
        "states_tile_the_holds",
        "core.hold_states",
        "The states of each part of a hold cover its piece of the day, without gap or overlap.",
        """
        with covered as (
            select hold_id, day_on, part_number, min(begin_at) as begin_at, max(end_at) as end_at,
                sum(date_diff('second', begin_at, end_at)) as seconds
            from core.hold_states group by all
        )
        select count(*) from core.holds as h
        inner join core.hold_parts as p using (cluster_name, hold_id, day_on)
        left join covered as c using (hold_id, day_on, part_number)
        where c.seconds is distinct from date_diff('second', h.begin_at, h.end_at)
            or c.begin_at <> h.begin_at or c.end_at <> h.end_at
        """,
    ),
    Law(
        "activity_tiles_the_window",
        "core.gpu_states",
        "What each device did covers the day's known window, without gap or overlap.",
        """
        with covered as (
            select cluster_name, day_on, node_uid, gpu_uuid, instance_number,
                min(begin_at) as begin_at, max(end_at) as end_at,
                sum(date_diff('second', begin_at, end_at)) as seconds
            from core.gpu_states group by all
        )
        select count(*) from core.gpus as g
        inner join core.windows as w using (cluster_name, day_on)
        left join covered as c
            using (cluster_name, day_on, node_uid, gpu_uuid, instance_number)
        where c.seconds is distinct from w.known_seconds
            or c.begin_at <> w.begin_at or c.end_at <> w.end_at
        """,
    ),
    Law(
        "a_stranger_has_what_nobody_holds",
        "core.gpu_strangers",
        "While somebody is known to hold a device, its work is no stranger's.",
        """
        select count(*) from core.gpu_strangers as s
        inner join core.gpu_owners as o
            using (cluster_name, day_on, node_uid, gpu_uuid, instance_number)
        where o.hold_count > 0 and o.begin_at < s.end_at and o.end_at > s.begin_at
        """,
    ),
    Law(
        "samples_are_accounted",
        "raw.metric_coverage",
        "Every sample that was kept is a reading, a copy of one, rejected or of no use.",
        """
        select count(*) from raw.metric_coverage
        where kept_sample_count
            <> reading_count + copy_count + rejected_count + unused_count
            or kept_sample_count > read_sample_count
        """,
    ),
    Law(
        "no_node_is_overbooked",
        "core.bookings",
        "At no second more is booked on a node than is installed.",
        """
        with steps as (
            select cluster_name, day_on, node_uid, begin_at as edge_at, share_micro_gpu as step
            from core.bookings
            union all
            select cluster_name, day_on, node_uid, end_at, -share_micro_gpu from core.bookings
            union all
            select cluster_name, day_on, node_uid, begin_at, -installed_micro_gpu
            from core.node_spells
            union all
            select cluster_name, day_on, node_uid, end_at, installed_micro_gpu
            from core.node_spells
        ), totals as (
            select sum(sum(step)) over (
                partition by cluster_name, day_on, node_uid order by edge_at) as over
            from steps group by cluster_name, day_on, node_uid, edge_at
        )
        select count(*) from totals where over > 0
        """,
    ),
    Law(
        "money_is_conserved",
        "core.ledger",
        "Per node, hour and price row the cost is GPU-seconds x price, half up to the micro-unit.",
        """
        with sums as (
            select l.cluster_name, l.node_uid, l.hour_at, l.price_id,
                (1000000 * sum(l.gpu_seconds))::hugeint as micro,
                (1000000 * sum(l.ledger_cost))::hugeint as cost
            from core.ledger as l where l.price_id is not null group by all
        )
        select count(*) from sums as s left join raw.prices as p using (price_id)
        where p.price_id is null or s.cost
            <> (2 * s.micro * p.price_micro_cost_per_gpu_hour + 3600000000) // 7200000000
        """,
    ),
    Law(
        "unpriced_is_not_zero",
        "core.ledger",
        "A row has a cost if and only if it has a price.",
        """
        select count(*) from core.ledger where (price_id is null) <> (ledger_cost is null)
        """,
    ),
    Law(
        "hours_are_the_ledger",
        "core.gpu_hours",
        "The hours add up to the ledger, in time and in money.",
        """
        select count(*) from (
            select sum(gpu_seconds) as t, sum(hour_cost) as c from core.gpu_hours
        ) as h, (select sum(gpu_seconds) as t, sum(ledger_cost) as c from core.ledger) as l
        where coalesce(h.t, 0) <> coalesce(l.t, 0) or coalesce(h.c, 0) <> coalesce(l.c, 0)
        """,
    ),
    Law(
        "marts_are_the_hours",
        "mart.team_days",
        "Every mart's total equals the ledger's, in time and in money.",
        """
        select count(*) from (
            select sum(gpu_seconds) as t, sum(hour_cost) as c from core.gpu_hours
        ) as h, (
            select sum(gpu_seconds) as t, sum(team_cost) as c from mart.team_days
        ) as a, (
            select sum(gpu_seconds) as t, sum(state_cost) as c from mart.fleet_states
        ) as b
        where coalesce(h.t, 0) <> coalesce(a.t, 0) or coalesce(h.c, 0) <> coalesce(a.c, 0)
            or coalesce(h.t, 0) <> coalesce(b.t, 0) or coalesce(h.c, 0) <> coalesce(b.c, 0)
        """,
    ),
    Law(
        "workloads_are_the_holders",
        "mart.workload_days",
        "What workloads held and cost is what teams held and cost.",
        """
        select count(*) from (
            select sum(gpu_seconds) as t, sum(ledger_cost) as c from core.ledger
            where hold_id is not null
        ) as l, (
            select sum(gpu_seconds) as t, sum(workload_cost) as c from mart.workload_days
        ) as w
        where coalesce(l.t, 0) <> coalesce(w.t, 0) or coalesce(l.c, 0) <> coalesce(w.c, 0)
        """,
    ),
    Law(
        "startups_are_the_ledger",
        "mart.startups",
        "What is held before it works adds up to the ledger, team by team and cause by cause.",
        """
        with held as (
            select team_name, state_name, cause_name, sum(gpu_seconds) as t, sum(ledger_cost) as c,
                sum(gpu_seconds) filter (where price_id is null) as u
            from core.ledger
            where hold_id is not null and state_name in ('starting', 'gang_wait', 'loading')
            group by all
        ), shown as (
            select team_name, state_name, cause_name, sum(gpu_seconds) as t,
                sum(startup_cost) as c, sum(unpriced_gpu_seconds) as u
            from mart.startups group by all
        )
        select count(*) from held full join shown using (team_name, state_name, cause_name)
        where held.t is distinct from shown.t or held.c is distinct from shown.c
            or coalesce(held.u, 0) is distinct from shown.u
        """,
    ),
    Law(
        "findings_are_of_the_ledger",
        "mart.finding_members",
        "Findings of one name have no more of a pod's time and money than the ledger has.",
        """
        with found as (
            select day_on, finding_name, pod_uid, sum(gpu_seconds) as t, sum(member_cost) as c
            from mart.finding_members group by all
        ), held as (
            select l.day_on, h.pod_uid, sum(l.gpu_seconds) as t, sum(l.ledger_cost) as c
            from core.ledger as l inner join core.holds as h using (cluster_name, day_on, hold_id)
            group by all
        )
        select count(*) from found left join held using (day_on, pod_uid)
        where found.t > coalesce(held.t, 0) or found.c > coalesce(held.c, 0)
        """,
    ),
    Law(
        "findings_are_their_members",
        "mart.workload_findings",
        "A finding has the time and the money of its members.",
        """
        with members as (
            select cluster_name, day_on, finding_name, subject_text, team_name, since_at,
                count(*) as n, sum(gpu_seconds) as t, sum(member_cost) as c
            from mart.finding_members group by all
        )
        select count(*) from mart.workload_findings as f full join members as m
            using (cluster_name, day_on, finding_name, subject_text, team_name, since_at)
        where f.evidence_text is null or f.member_count <> coalesce(m.n, 0)
            or f.gpu_seconds <> coalesce(m.t, 0) or coalesce(f.finding_cost, 0) <> coalesce(m.c, 0)
        """,
    ),
    Law(
        "the_waterfall_is_the_fleet",
        "mart.fleet_waterfall",
        "Its first step is the whole ledger, in time and in money.",
        """
        select count(*) from (
            select sum(gpu_seconds) as t, sum(step_cost) as c from mart.fleet_waterfall
            where step_name = 'installed'
        ) as w, (select sum(gpu_seconds) as t, sum(hour_cost) as c from core.gpu_hours) as h
        where coalesce(h.t, 0) <> coalesce(w.t, 0) or coalesce(h.c, 0) <> coalesce(w.c, 0)
        """,
    ),
    Law(
        "waits_tile",
        "core.waits",
        "The waits of an attempt add up from queued to started, with no gap and no overlap.",
        """
        with tiled as (
            select attempt_id, day_on, sum(wait_seconds) as seconds, min(begin_at) as begin_at,
                max(end_at) as end_at
            from core.waits group by all
        )
        select count(*) from core.attempts as a full join tiled as t using (attempt_id, day_on)
        where t.seconds is null or a.queued_at is null
            or t.seconds is distinct from date_diff('second', t.begin_at, t.end_at)
            or t.begin_at <> a.queued_at
            or t.end_at <> coalesce(
                a.started_at,
                case when not a.is_start_known then a.placed_at end,
                greatest(
                    a.queued_at, a.eligible_at, a.quota_reserved_at, a.admitted_at, a.placed_at,
                    coalesce(a.ended_at, a.known_until_at)
                )
            )
        """,
    ),
    Law(
        "coverage_tiles_the_window",
        "core.windows",
        "The stretches of coverage do not overlap.",
        """
        select count(*) from core.windows as w inner join (
            select cluster_name, day_on, sum(date_diff('second',
                date_trunc('second', begin_at), date_trunc('second', end_at))) as seconds
            from raw.coverage group by all
        ) as c using (cluster_name, day_on)
        where c.seconds <> w.known_seconds
        """,
    ),
)


def breaches(run: Run, law: Law) -> int:
    """How often the run's staged tables break a law."""
    with run.connect() as con:
        query = law.breaches.replace("$zone", f"'{run.window.zone}'")
        [(count,)] = con.execute(query).fetchall()
    return count


def broken(run: Run) -> list[str]:
    """What the staged tables break: laws, and rules of their contracts, each with its count."""
    found = []
    for name in run.staged():
        for breach in run.audit(CATALOG[name]):
            found.append(f"{breach.table}.{breach.rule} ({breach.count:,} rows)")
    for law in LAWS:
        if count := breaches(run, law):
            found.append(f"{law.name} ({count:,} breaches): {law.doc}")
    return found
