"""One configuration and its variations, as a person asks for them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from twin.core.checking import Problem, problems_of
from twin.core.configuration import Configuration
from twin.core.fields import fields_of
from twin.core.outside import BadInput, read_text, yaml_of
from twin.core.settings import Settings

_FIELDS = {field.name: field for field in fields_of(Configuration)}
_POINTS = 10
# a range this wide is walked in equal ratios, not in equal steps
_WIDE = 50
_MOST_VARIATIONS = 10_000
# a configuration has a few dozen fields
_MOST_BYTES = 64 * 1024


class BadQuestion(Exception):
    """Not a configuration, or not a question about one: the field and what is wrong with it, and where the
    configuration came from."""

    def __init__(self, *problems: Problem, where: str = "") -> None:
        told = "; ".join(f"{field}: {reason}" if field else reason for field, reason in problems)
        super().__init__(f"{where}: {told}" if where else told)
        self.problems = problems


@dataclass(frozen=True)
class Variation:
    """A field and the values it should take."""

    field: str
    values: tuple[Any, ...]


def read_configuration(text: str, settings: Settings) -> Configuration:
    """A flat YAML or JSON file, or the id of a configuration that was measured."""
    path = Path(text)
    if path.is_file():
        return checked(_flat(path), text)
    if re.fullmatch(r"[0-9a-f]{16}", text):
        return _measured(text, settings)
    raise BadQuestion(("", f"{text} is neither a file nor a configuration_id"))


def read_variation(text: str) -> Variation:
    """`field=a,b,c` or `field=lo..hi[:n]`."""
    name, equals, values = text.partition("=")
    if not equals or not values:
        raise BadQuestion(("", f"{text!r} is not field=a,b,c or field=lo..hi[:n]"))
    if name not in _FIELDS:
        raise BadQuestion((name, "unknown field"))
    between = re.fullmatch(r"([-+.\deE]+?)\.\.([-+.\deE]+?)(?::(\d+))?", values)
    if between is None:
        return Variation(name, tuple(value.strip() for value in values.split(",")))
    if _FIELDS[name].kind not in ("integer", "number"):
        raise BadQuestion((name, f"a range needs numbers, this is {_FIELDS[name].kind}"))
    try:
        low, high = float(between[1]), float(between[2])
    except ValueError:
        raise BadQuestion((name, f"{values!r} is not a range")) from None
    points = int(between[3] or _POINTS)
    if points < 2 or low >= high or points > _MOST_VARIATIONS or not isfinite(high - low):
        raise BadQuestion((name, f"{values!r} is not a range of 2 to {_MOST_VARIATIONS} values"))
    return Variation(name, spaced(low, high, points, whole=_FIELDS[name].kind == "integer"))


def varied(
    base: Configuration, variations: Sequence[Variation]
) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Every combination: the varied fields, and the flat configuration that they make."""
    combinations = int(np.prod([len(one.values) for one in variations]))
    if combinations > _MOST_VARIATIONS:
        raise BadQuestion(("", f"{combinations} combinations; at most {_MOST_VARIATIONS}"))
    flat = {name: value for name, value in base.flat().items() if value is not None}
    found = []
    for values in product(*(one.values for one in variations)):
        changes = dict(zip((one.field for one in variations), values, strict=True))
        where = ", ".join(f"{name}={value}" for name, value in changes.items())
        made = checked(flat | changes, where).flat()
        found.append(({name: made[name] for name in changes}, made))
    return found


def is_wide(low: float, high: float) -> bool:
    return low > 0 and high / low > _WIDE


def spaced(low: float, high: float, points: int, whole: bool) -> tuple[float, ...]:
    """In equal steps, or where the range is wide in equal ratios."""
    values = (np.geomspace if is_wide(low, high) else np.linspace)(low, high, points)
    if whole:
        return tuple(int(value) for value in dict.fromkeys(np.round(values).tolist()))
    return tuple(float(f"{value:.6g}") for value in values)


def _flat(path: Path) -> Mapping[str, Any]:
    try:
        values = yaml_of(read_text(path, _MOST_BYTES))
    except BadInput as error:
        raise BadQuestion(("", f"{path} is not YAML or JSON: {error}")) from error
    if not isinstance(values, dict):
        raise BadQuestion(("", f"{path} is not an object of fields and values"))
    return {str(name): value for name, value in values.items() if value is not None}


def checked(values: Mapping[str, Any], where: str = "") -> Configuration:
    if problems := problems_of(dict(values)):
        raise BadQuestion(*problems, where=where)
    return Configuration.from_flat(values)


def _measured(configuration_id: str, settings: Settings) -> Configuration:
    from features.lake import Lake, NoSuchTable
    from twin.core.tables import MEASUREMENTS

    try:
        rows = (
            Lake(settings).arrow(MEASUREMENTS, where=f"configuration_id = '{configuration_id}'").to_pylist()
        )
    except NoSuchTable as error:
        raise BadQuestion(("", f"no configuration is known yet, {configuration_id} neither")) from error
    if not rows:
        raise BadQuestion(("", f"no measurement has configuration_id {configuration_id}"))
    known = {name: rows[0][name] for name in _FIELDS if rows[0].get(name) is not None}
    return Configuration.from_flat(known)
