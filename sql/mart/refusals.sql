-- mart.refusals: What of the sources was refused or set aside: how much, why, and how to mend it.
select
    cluster_name,
    day_on,
    reason_name,
    is_row_lost,
    sum(rejected_count)::bigint as rejected_count,
    count(*) as place_count,
    -- The place and its example are of one row; of equal ones the last by name.
    arg_max(source_ref, (rejected_count, source_ref)) as source_ref,
    arg_max(example_text, (rejected_count, source_ref)) as example_text,
    max(mend_text) as mend_text
from raw.rejections
group by cluster_name, day_on, reason_name, is_row_lost
