"""Every query returns what its contract promises, and every contract keeps the rules of names.

What the rows hold is tested in `test_sql`; the rules that single rows keep, by the laws.
"""

import duckdb
import pytest

import sql
from models.catalog import CATALOG, VIEWS
from models.states import CAUSES, HELD_STATES, STATES, WASTE_STATES
from models.table import Kind
from models.units import unit_of

COMPUTED = {**sql.QUERIES, **sql.VIEWS}
CONTRACTS = {**CATALOG, **VIEWS}
NUMBERS = (Kind.COUNT, Kind.DECIMAL, Kind.RATIO)
PARAMETERS = {"zone": "UTC", "begin_on": "2026-01-01", "end_on": "2026-01-02",
              "clusters": ["a"], "teams": None, "kind": "all", "wanted": None}  # fmt: skip
ENDINGS = {Kind.INSTANT: "_at", Kind.DAY: "_on"}
COLUMNS = [
    pytest.param(column, id=f"{table.name}.{column.name}")
    for table in CONTRACTS.values()
    for column in table.columns
]


@pytest.fixture(scope="module")
def con():
    with duckdb.connect() as con:
        con.execute("set TimeZone = 'UTC'")
        for layer in sorted({table.layer for table in CATALOG.values()}):
            con.execute(f"create schema {layer}")
        for table in CATALOG.values():
            con.execute(table.ddl(strict=False))
        yield con


@pytest.mark.parametrize("name", COMPUTED)
def test_a_query_returns_exactly_its_contract(con, name):
    [statement] = duckdb.extract_statements(COMPUTED[name])
    told = {key: PARAMETERS[key] for key in statement.named_parameters}
    query = f"describe {COMPUTED[name].strip().rstrip(';')}"
    rows = (con.execute(query, told) if told else con.execute(query)).fetchall()
    promised = {column.name: column.kind.sql for column in CONTRACTS[name].columns}
    assert {column: kind for column, kind, *_ in rows} == promised


@pytest.mark.parametrize("name", COMPUTED)
def test_a_query_opens_with_its_name_and_its_contract_s_sentence(name):
    assert COMPUTED[name].splitlines()[0] == f"-- {name}: {CONTRACTS[name].doc}"


def test_every_computed_table_has_a_query_and_every_query_a_table():
    computed = {name for name, table in CATALOG.items() if table.layer in ("core", "mart")}
    assert computed == set(sql.QUERIES)
    assert set(VIEWS) == set(sql.VIEWS)
    assert {name for name in sql.CARRIES if name not in CATALOG} == set()


@pytest.mark.parametrize("column", COLUMNS)
def test_a_column_s_name_tells_its_unit_or_what_it_is(column):
    if column.kind in NUMBERS:
        assert unit_of(column.name)
    elif column.kind is Kind.FLAG:
        assert column.name.startswith("is_")
    elif column.kind in ENDINGS:
        assert column.name.endswith(ENDINGS[column.kind])
    else:
        assert unit_of(column.name) is None
        assert not column.name.startswith("is_")


@pytest.mark.parametrize("table", CONTRACTS.values(), ids=lambda table: table.name)
def test_a_grain_and_its_ranges_name_columns_of_the_table(table):
    names = [column.name for column in table.columns]
    assert len(names) == len(set(names))
    assert {*table.grain, *(name for pair in table.ranges for name in pair)} <= set(names)


def test_every_mart_says_who_may_see_which_of_its_rows():
    for table in CONTRACTS.values():
        if table.layer == "mart" or table.name in VIEWS:
            assert table.scope == "platform" or table.column(table.scope or "")
        else:
            assert table.scope is None


@pytest.mark.parametrize("name", ["state_name", "cause_name"])
def test_states_and_their_causes_are_closed_sets(name):
    words = {"state_name": set(STATES), "cause_name": set(CAUSES)}[name]
    for table in CONTRACTS.values():
        if table.layer in ("core", "mart"):
            for column in table.columns:
                if column.name == name:
                    assert column.choices and set(column.choices or ()) <= words
    assert set(WASTE_STATES) < set(HELD_STATES) < set(STATES)
