"""Formulas over printed figures, on intervals: a printed figure stands for all that round to it."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping, Sequence

Interval = tuple[float, float]


class BadFormula(Exception):
    """A formula that cannot be worked out."""


def evaluate(formula: str, values: Mapping[str, Sequence[Interval]]) -> Interval:
    """The interval of a formula; a name stands for one figure, or for several inside sum(), max(), min()."""
    try:
        return _scalar(ast.parse(formula, mode="eval").body, values)
    except (SyntaxError, KeyError, ZeroDivisionError) as error:
        raise BadFormula(f"{formula!r}: {error}") from error


def _scalar(node: ast.expr, values: Mapping[str, Sequence[Interval]]) -> Interval:
    match node:
        case ast.Constant(value=int() | float() as number):
            return float(number), float(number)
        case ast.Name(id=name):
            found = values[name]
            if len(found) != 1:
                raise BadFormula(f"{name} stands for {len(found)} figures")
            return found[0]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            low, high = _scalar(operand, values)
            return -high, -low
        case ast.BinOp(left=left, op=operator, right=right):
            return _combine(operator, _scalar(left, values), _scalar(right, values))
        case ast.Compare(left=left, ops=[ast.Lt() | ast.Gt() as operator], comparators=[right]):
            first, second = _scalar(left, values), _scalar(right, values)
            return _truth(first, second) if isinstance(operator, ast.Lt) else _truth(second, first)
        case ast.Call(func=ast.Name(id=name), args=arguments) if name in _FUNCTIONS:
            parts = [part for argument in arguments for part in _many(argument, values)]
            return _FUNCTIONS[name](parts)
    raise BadFormula(f"{ast.unparse(node)} is not arithmetic")


def _many(node: ast.expr, values: Mapping[str, Sequence[Interval]]) -> Sequence[Interval]:
    """A column's figures; arithmetic over columns of the same length goes row by row."""
    match node:
        case ast.Name(id=name):
            return values[name]
        case ast.BinOp(left=left, op=operator, right=right):
            first, second = _many(left, values), _many(right, values)
            rows = max(len(first), len(second))
            if {len(first), len(second)} - {1, rows}:
                raise BadFormula(f"{ast.unparse(node)} is over {len(first)} and {len(second)} figures")
            first, second = (list(part) * (rows if len(part) == 1 else 1) for part in (first, second))
            return [_combine(operator, one, other) for one, other in zip(first, second, strict=True)]
    return [_scalar(node, values)]


def _combine(operator: ast.operator, first: Interval, second: Interval) -> Interval:
    match operator:
        case ast.Add():
            return first[0] + second[0], first[1] + second[1]
        case ast.Sub():
            return first[0] - second[1], first[1] - second[0]
        case ast.Mult():
            products = [a * b for a in first for b in second]
            return min(products), max(products)
        case ast.Div():
            quotients = [a / b for a in first for b in second]
            return min(quotients), max(quotients)
    raise BadFormula(f"{type(operator).__name__} is not arithmetic")


def _truth(smaller: Interval, larger: Interval) -> Interval:
    """1 if certainly smaller, 0 if certainly not, and both if the printed digits leave it open."""
    return float(smaller[1] < larger[0]), float(smaller[0] < larger[1])


_FUNCTIONS: dict[str, Callable[[Sequence[Interval]], Interval]] = {
    "sum": lambda parts: (sum(low for low, _ in parts), sum(high for _, high in parts)),
    "max": lambda parts: (max(low for low, _ in parts), max(high for _, high in parts)),
    "min": lambda parts: (min(low for low, _ in parts), min(high for _, high in parts)),
    "ceil": lambda parts: (float(math.ceil(parts[0][0])), float(math.ceil(parts[0][1]))),
}
