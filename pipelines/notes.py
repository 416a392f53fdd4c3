"""What a run tells although it published: what was set aside, not booked, without a price.

What it refuses is told by `collect`, what breaks a law by `laws`.
"""

from lake.run import Run


def notes(run: Run, *, is_priced: bool) -> list[str]:
    """Each with how much, where, and how to mend it or look closer."""
    return [*_set_aside(run), *_unbooked(run), *(_unpriced(run) if is_priced else [])]


def _set_aside(run: Run) -> list[str]:
    query = """
        select reason_name, sum(rejected_count)::bigint, min(source_ref), any_value(mend_text)
        from raw.rejections where not is_row_lost group by all order by all
    """
    with run.connect() as con:
        rows = con.execute(query).fetchall()
    return [f"set aside: {n:,} x {why} in {where}: {mend}" for why, n, where, mend in rows]


def _unbooked(run: Run) -> list[str]:
    query = "select reason_name, sum(gpu_seconds) from core.unbooked group by all order by all"
    with run.connect() as con:
        sums = con.execute(query).fetchall()
    return [
        f"{seconds:,.0f} GPU-seconds of holds could not be booked ({reason}), which: "
        'gpuledger query "from core.unbooked"'
        for reason, seconds in sums
        if seconds
    ]


def _unpriced(run: Run) -> list[str]:
    query = """
        select gpu_model_name, sum(unpriced_gpu_seconds), min(hour_at), max(hour_at)
        from core.gpu_hours where unpriced_gpu_seconds > 0 group by all order by all
    """
    with run.connect() as con:
        sums = con.execute(query).fetchall()
    return [
        f"{seconds:,.0f} GPU-seconds of {model} have no price, so their cost is not known: "
        f"no row of prices is valid for all of {first:%Y-%m-%d %H:00} to {last:%Y-%m-%d %H:59} UTC"
        for model, seconds, first, last in sums
    ]
