-- mart.metric_reads: What was read of each family of metrics, as it was found out last: the day's stretches.
select
    cluster_name,
    day_on,
    source_ref,
    family_name,
    begin_at,
    end_at,
    read_name,
    reason_text,
    try_count,
    date_diff('second', begin_at, end_at) as stretch_seconds,
    reading_count,
    rejected_count
from raw.metric_coverage
