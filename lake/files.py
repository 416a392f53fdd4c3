"""Which tables have files of some days, by the catalogue alone: asking each costs far more.

What is in the files belongs to whoever reads them.
"""

from datetime import date

import duckdb

from lake.connect import CATALOGUE, literal

QUERY = """
with days as (
    select
        data_file_id,
        max(partition_value) filter (where partition_key_index = 0) as cluster_name,
        max(partition_value) filter (where partition_key_index = 1) as day_on
    from {catalogue}.ducklake_file_partition_value
    group by data_file_id
), found as (
    select f.table_id
    from {catalogue}.ducklake_data_file as f left join days as d using (data_file_id)
    where f.end_snapshot is null and (
        d.data_file_id is null
        or d.cluster_name = {cluster} and d.day_on >= {begin} and d.day_on < {end}
    )
    union
    select table_id from {catalogue}.ducklake_inlined_data_tables
)
select s.schema_name || '.' || t.table_name
from {catalogue}.ducklake_table as t
join {catalogue}.ducklake_schema as s using (schema_id)
where t.end_snapshot is null and t.table_id in (from found)
"""


def tables_with(
    con: duckdb.DuckDBPyConnection, cluster: str, begin_on: date, end_on: date
) -> set[str]:
    """Names of the tables that may have rows of a cluster's days; the others have none.

    Of a table that is not split by cluster and day it is not known: it may.
    """
    query = QUERY.format(
        catalogue=CATALOGUE,
        cluster=literal(cluster),
        begin=literal(begin_on.isoformat()),
        end=literal(end_on.isoformat()),
    )
    return {name for (name,) in con.execute(query).fetchall()}
