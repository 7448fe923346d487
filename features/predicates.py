"""Predicates that people write: one condition over the columns of a table, read before anything is run.

The engine behind the lake knows far more SQL than a condition needs, and more with every release. So a
predicate is parsed here, every part of it must be one that this module names, and what is run is written anew
from the parsed tree, with a bracket wherever two readers could differ: never the text that came in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from functools import cache
from typing import TYPE_CHECKING

from twin.core.tables import Table

if TYPE_CHECKING:
    from sqlglot.expressions import Column, Expr

MOST_CHARACTERS = 4_000
# the engine's own parser gives up at fifty
MOST_LEVELS = 16
FUNCTIONS = (
    "ABS", "COALESCE", "LENGTH", "LOWER", "REGEXP_LIKE", "ROUND", "STARTS_WITH", "SUBSTRING", "TRIM", "UPPER",
)  # fmt: skip
# of the dialects that sqlglot knows, the one whose conditions the engine reads alike; a test compares rows
_DIALECT = "postgres"
_TYPES = ("DATE", "TIMESTAMP", "INT", "BIGINT", "DOUBLE", "TEXT", "VARCHAR")
_NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?")
_SHOWN = 80


class BadPredicate(Exception):
    """A predicate that is not a condition over the table's columns."""


def checked(where: str, table: Table) -> str:
    """The condition as the engine is to run it; raises `BadPredicate` for anything else."""
    from sqlglot import exp

    tree = _parsed(where)
    for node in tree.walk():
        if isinstance(node, exp.Column):
            _name_column(node, where, table)
        elif isinstance(node, exp.Literal) and not node.is_string and not _NUMBER.fullmatch(node.name):
            raise _bad(where, f"{node.name!r} is not a number")
        elif isinstance(node, exp.DataType):
            if node.sql(_DIALECT) not in _engine_types():
                raise _bad(where, f"a value can be cast to {', '.join(_TYPES)} only")
        elif not isinstance(node, _allowed()):
            raise _bad(where, f"{_told(node)} may not stand in a predicate: {_what_may()}")
        elif node.args.get("query") or node.args.get("field") or node.args.get("unnest"):
            raise _bad(where, f"IN needs a list of values: {_what_may()}")
    _bracket(tree)
    if _levels(tree) > MOST_LEVELS:
        raise _bad(where, f"it is nested more than {MOST_LEVELS} levels deep")
    return tree.sql(_DIALECT, comments=False)


def one_of(column: str, values: Iterable[str]) -> str:
    """The condition that a column has one of some values, whatever characters are in them."""
    quoted = ", ".join("'" + value.replace("'", "''") + "'" for value in values)
    return f"{column} IN ({quoted})"


def failed(where: str, error: Exception) -> BadPredicate:
    """What the engine had against a condition that was checked: types that do not fit, or a bad pattern."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return _bad(where, lines[0] if lines else type(error).__name__)


def _parsed(where: str) -> Expr:
    import logging

    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    if len(where) > MOST_CHARACTERS:
        raise _bad(where, f"it has {len(where)} characters, and at most {MOST_CHARACTERS} are read")
    if not where.isprintable():
        raise _bad(where, "it has a character that cannot be printed")
    # told below, in a sentence, or not at all
    logging.getLogger("sqlglot").setLevel(logging.ERROR)
    try:
        if any(token.comments for token in sqlglot.tokenize(where, dialect=_DIALECT)):
            raise _bad(where, "a predicate has no comments")
        tree: Expr = sqlglot.parse_one(where, dialect=_DIALECT, into=exp.Condition)
    except SqlglotError as error:
        raise _bad(where, f"it is not one condition; {_what_may()}") from error
    except RecursionError as error:
        raise _bad(where, f"it is nested more than {MOST_LEVELS} levels deep") from error
    return tree


@cache
def _allowed() -> tuple[type[Expr], ...]:
    from sqlglot import exp

    logic = (exp.And, exp.Or, exp.Not, exp.Paren)
    comparing = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Is, exp.NullSafeEQ, exp.NullSafeNEQ,
                 exp.Between, exp.In, exp.Like, exp.ILike)  # fmt: skip
    values = (exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Cast)
    arithmetic = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Neg)
    functions = (exp.Abs, exp.Coalesce, exp.Length, exp.Lower, exp.RegexpLike, exp.Round, exp.StartsWith,
                 exp.Substring, exp.Trim, exp.Upper)  # fmt: skip
    return (*logic, *comparing, *values, *arithmetic, *functions)


@cache
def _engine_types() -> frozenset[str]:
    from sqlglot import exp

    return frozenset(exp.DataType.build(name, dialect=_DIALECT).sql(_DIALECT) for name in _TYPES)


def _name_column(column: Column, where: str, table: Table) -> None:
    """Under its name and no other: the engine is not to fold, guess or look elsewhere."""
    if len(column.parts) > 1:
        raise _bad(
            where, f"{column.sql(_DIALECT)!r}: columns stand without a table, and only {table.name} is read"
        )
    named = column.this
    if not hasattr(named, "quoted"):
        raise _bad(where, f"{column.sql(_DIALECT)!r} is not a column")
    name = named.name if named.quoted else named.name.lower()
    if name not in table.columns:
        near = get_close_matches(name, table.columns, n=1)
        hint = f"; did you mean {near[0]}?" if near else f"; `twin schema {table.name}` lists its columns"
        raise _bad(where, f"{table.name} has no column {name!r}{hint}")
    named.set("this", name)
    named.set("quoted", True)


def _bracket(tree: Expr) -> None:
    """Whatever is put together from parts gets its bracket, so that no precedence is left to agree upon."""
    from sqlglot import exp

    together = (exp.Binary, exp.Not, exp.Neg, exp.Between, exp.In)
    for node in reversed(list(tree.bfs())):
        above = node.parent
        alone = above is None or _encloses(above)
        # a row of ANDs needs none, and may be longer than anybody nests
        chained = isinstance(node, exp.And | exp.Or) and type(node) is type(above)
        if isinstance(node, together) and not alone and not chained:
            bracket = exp.Paren()
            node.replace(bracket)
            bracket.set("this", node)


def _encloses(node: Expr) -> bool:
    """Whether its parts stand in its own brackets; sqlglot counts AND among the functions."""
    from sqlglot import exp

    return isinstance(node, exp.Paren | exp.Func) and not isinstance(node, exp.Binary)


def _levels(tree: Expr) -> int:
    deepest = 0
    rest: list[tuple[Expr, int]] = [(tree, 0)]
    while rest:
        node, level = rest.pop()
        level += _encloses(node)
        deepest = max(deepest, level)
        rest += [(part, level) for part in node.iter_expressions()]
    return deepest


def _told(node: Expr) -> str:
    text = node.sql(_DIALECT, comments=False)
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")


def _what_may() -> str:
    functions = ", ".join(FUNCTIONS)
    return f"columns are compared, with AND, OR, NOT, IN, BETWEEN, LIKE, IS NULL, + - * / % and {functions}"


def _bad(where: str, reason: str) -> BadPredicate:
    shown = where if len(where) <= _SHOWN else f"{where[:_SHOWN]}..."
    return BadPredicate(f"{shown!r}: {reason}")
