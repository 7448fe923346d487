"""What the page starts with: what can be asked, in which ranges, and what else there is to see."""

from __future__ import annotations

from typing import Any

from twin.app.answering import Twin
from twin.app.asking import is_wide
from twin.app.costs import shipped_costs
from twin.app.describing import defaults_of, fields_named, flat_example
from twin.app.platform import read_state
from twin.app.serving.places import seen_by
from twin.core.columns import Columns
from twin.core.configuration import FAMILIES, Platform, Software
from twin.core.fields import Field
from twin.core.metrics import METRICS
from twin.core.settings import Settings
from twin.systems.registry import BY_FAMILY

# where no range was measured a slider goes as far to both sides as answers are trusted
_REACH = 4.0
_LOAD = "offered_rate_msgs_per_s"


def families(twin: Twin) -> list[dict[str, Any]]:
    return [_family(twin, family) for family in FAMILIES]


def slider_of(twin: Twin, family: str, field: Field, value: Any = None) -> dict[str, Any] | None:
    """As far as the physics is trusted: a few times the measured range, or the value itself."""
    if field.kind not in ("integer", "number") or field.name == _LOAD:
        return None
    system = BY_FAMILY[family]
    domain = twin.physics.calibration(system).domain.get(family)
    measured = domain.ranges.get(field.name) if domain else None
    if measured is None and value is None:
        return None
    low, high = measured or (float(value), float(value))
    highest = max(high, 1.0) * (min(system.reach.get(field.name, _REACH), _REACH) if measured else _REACH)
    if field.maximum is not None:
        highest = min(highest, field.maximum)
    lowest = low / _REACH if low > 0 else 0.0
    if field.minimum is not None:
        lowest = max(lowest, field.minimum)
    if value is not None:
        lowest, highest = min(lowest, value), max(highest, value)
    if field.kind == "integer":
        lowest, highest = round(lowest), round(highest)
    return {"from": lowest, "to": highest, "log": is_wide(lowest, highest)} if lowest < highest else None


def links(settings: Settings, reader: str | None) -> dict[str, str | None]:
    """Other pages of the platform, where they are up or were written, for a browser that reached this one by
    the name `reader`. Airflow stays on this machine, however that is reached."""
    state = read_state(settings)
    up = {one.name: one.url for one in state.services if one.state == "healthy"} if state else {}
    mlflow = up.get("mlflow")
    written = {name: (settings.home / name / "index.html").is_file() for name in ("quality", "book")}
    return {
        "airflow": up.get("api-server"),
        "mlflow": mlflow and seen_by(reader, mlflow, settings.host),
        "data_docs": "/quality/index.html" if written["quality"] else None,
        "book": "/book/index.html" if written["book"] else None,
    }


def sizing() -> dict[str, Any]:
    costs = shipped_costs()
    return {
        "costs": costs.prices.model_dump(),
        "options": costs.options,
        "boxes": costs.boxes,
    }


def _family(twin: Twin, family: str) -> dict[str, Any]:
    system = BY_FAMILY[family]
    example = flat_example(family)
    fields = fields_named(family) or ()
    defaults = defaults_of(family)
    return {
        "family": family,
        "title": system.title,
        "metrics": [described(METRICS[name]) for name in _metrics(twin, family, example)],
        "example": example,
        "fields": [
            _field(one, defaults) | {"slider": slider_of(twin, family, one, example.get(one.name))}
            for one in fields
            if one.name != "family"
        ],
    }


def described(field: Field) -> dict[str, Any]:
    return {"name": field.name, "description": field.description, "unit": field.unit}


def _metrics(twin: Twin, family: str, example: dict[str, Any]) -> list[str]:
    """A system may tell costs that only one of its families has: those that the example has, or all where
    nothing is known of it."""
    system, columns = BY_FAMILY[family], Columns.of_rows([example])
    told = [one.metric for one in system.told]
    foretold = {name: twin.physics.foretell(system, columns, name, doubts=False) for name in told}
    return [name for name in told if foretold[name].excuse[0] is None] or told


def _field(field: Field, defaults: dict[str, Any]) -> dict[str, Any]:
    return {
        **described(field),
        "kind": field.kind,
        "choices": list(field.choices),
        "minimum": field.minimum,
        "exclusive_minimum": field.exclusive_minimum,
        "maximum": field.maximum,
        "required": not field.nullable and field.name not in defaults,
        "default": defaults.get(field.name),
        "part": _part(field.name),
    }


def _part(name: str) -> str:
    if name == _LOAD:
        return "load"
    return (
        "platform"
        if name in Platform.model_fields
        else "software"
        if name in Software.model_fields
        else "workload"
    )
