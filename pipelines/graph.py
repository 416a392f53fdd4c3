"""Which table reads which, from DuckDB's own parse of the queries; running them is `compute`'s."""

import json
from functools import cache
from graphlib import TopologicalSorter

import duckdb

import sql


@cache
def tables_read(query: str) -> frozenset[str]:
    """The stored tables that a SELECT reads; ValueError where it does not parse."""
    [(text,)] = duckdb.execute("select json_serialize_sql(?)", [query]).fetchall()
    tree = json.loads(text)
    if tree["error"]:
        raise ValueError(tree["error_message"])
    found: set[str] = set()

    def walk(node: object) -> None:
        if isinstance(node, dict):
            if node.get("type") == "BASE_TABLE" and node.get("schema_name"):
                found.add(f"{node['schema_name']}.{node['table_name']}")
            for child in node.values():
                walk(child)
        elif isinstance(node, list):
            for child in node:
                walk(child)

    walk(tree)
    return frozenset(found)


@cache
def order() -> tuple[str, ...]:
    """The computed tables, each after what it reads."""
    graph = {
        name: {read for read in tables_read(query) if read in sql.QUERIES}
        for name, query in sorted(sql.QUERIES.items())
    }
    return tuple(TopologicalSorter(graph).static_order())


@cache
def needed_for(names: frozenset[str]) -> tuple[str, ...]:
    """The computed tables that these need, themselves included, in order."""
    wanted = set(names)
    for name in reversed(order()):
        if name in wanted:
            wanted |= {read for read in tables_read(sql.QUERIES[name]) if read in sql.QUERIES}
    return tuple(name for name in order() if name in wanted)
