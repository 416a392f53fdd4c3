"""What a statement of a reader asks for, and whether a reader may ask it.

Judged on DuckDB's own parse, by what is allowed, not by what is known to be harmful. Which rows a
viewer may see is decided in `read`.
"""

import json
import re
from collections.abc import Iterator, Set
from dataclasses import dataclass
from typing import Any

import duckdb

from lake.connect import literal
from lake.errors import ScopeError

FUNCTIONS = frozenset({"range", "generate_series", "unnest", "repeat"})
"""Functions that may stand where a table stands; they read nothing."""

SOURCES = frozenset(
    {
        "BASE_TABLE",
        "EMPTY",
        "EXPRESSION_LIST",
        "JOIN",
        "PIVOT",
        "SHOW_REF",
        "SUBQUERY",
        "TABLE_FUNCTION",
    }
)
"""What may stand where a table stands."""

PLAIN_NAME = re.compile(r"[a-z_][a-z0-9_]*")
"""A name that DuckDB cannot take for that of a file."""


@dataclass(frozen=True)
class Asked:
    """The tables (`layer.name`) and table functions that a statement reads."""

    tables: frozenset[str]
    functions: frozenset[str]


def asked(con: duckdb.DuckDBPyConnection, statement: str) -> Asked:
    """What the statement reads; ScopeError unless it is one SELECT of plain names.

    Other catalogs, other snapshots, files, and tables of no layer are refused by name.
    """
    [(text,)] = con.execute(f"select json_serialize_sql({literal(statement)})").fetchall()
    try:
        tree = json.loads(text)
    except RecursionError as error:
        raise ScopeError("this is nested too deep") from error
    if tree["error"]:
        if tree.get("error_type") == "parser":
            raise ScopeError(f"this is not SQL: {tree['error_message']}")
        raise ScopeError("only a SELECT may be asked here")
    if len(tree["statements"]) != 1:
        raise ScopeError("one SELECT at a time")
    nodes = list(_nodes(tree["statements"][0]))
    named = {name.lower() for node in nodes for name in _own_names(node)}
    if strange := sorted(name for name in named if not PLAIN_NAME.fullmatch(name)):
        raise ScopeError(f"{strange[0]!r}: name a part of a query with letters, digits and '_'")
    tables, functions = set(), set()
    for node in nodes:
        kind = node.get("type")
        if "sample" in node and "alias" in node and kind not in SOURCES:
            raise ScopeError(f"{kind} cannot be read from here")
        if kind == "BASE_TABLE":
            if name := _table(node, named):
                tables.add(name)
        elif kind == "TABLE_FUNCTION":
            functions.add(_function(node["function"]))
        elif kind == "SHOW_REF" and not node.get("query"):
            raise ScopeError("SHOW is not answered here: describe a table by its name")
    return Asked(frozenset(tables), frozenset(functions))


def refuse_others(found: Asked, tables: Set[str], functions: Set[str]) -> None:
    """ScopeError if the statement reads anything but these tables and functions."""
    if others := sorted(found.tables - tables):
        raise ScopeError(f"{others[0]} is not here to be read, or not in your scope")
    if others := sorted(found.functions - functions - FUNCTIONS):
        raise ScopeError(f"{others[0]}() cannot be read from here")


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """Every object of the parse tree, without recursion: a query may be nested deep."""
    left = [tree]
    while left:
        node = left.pop()
        if isinstance(node, dict):
            yield node
            left.extend(node.values())
        elif isinstance(node, list):
            left.extend(node)


def _own_names(node: dict[str, Any]) -> Iterator[str]:
    """The names that a WITH gives to its parts."""
    if isinstance(node.get("cte_map"), dict):
        yield from (part["key"] for part in node["cte_map"]["map"])
    if node.get("cte_name"):
        yield node["cte_name"]


def _table(node: dict[str, Any], named: Set[str]) -> str | None:
    """The table's name; None for a part of the same query."""
    catalog, schema = node["catalog_name"].lower(), node["schema_name"].lower()
    name = node["table_name"].lower()
    if catalog:
        raise ScopeError(f"{catalog}.{schema}.{name}: tables are called layer.name here")
    if node.get("at_clause"):
        raise ScopeError(f"{schema}.{name}: choose the snapshot for the whole query, not with AT")
    if schema:
        return f"{schema}.{name}"
    if name not in named:
        raise ScopeError(f"{name}: tables are called layer.name, such as mart.team_days")
    return None


def _function(node: dict[str, Any]) -> str:
    if node.get("class") != "FUNCTION":
        raise ScopeError("this cannot be read from here")
    if node.get("catalog") or node.get("schema"):
        raise ScopeError(f"{node['function_name']}: call functions by their plain name")
    return node["function_name"].lower()
