"""The figures that ship with the platform: what reading each catalogued document gave."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from twin.core.fields import flatten, pick
from twin.core.measurement import Origin, PrintedFigure
from twin.core.tables import FIGURES

_FIGURES = Path(__file__).parent / "figures"


def shipped_figures(source_id: str) -> list[PrintedFigure]:
    with (_FIGURES / f"{source_id}.csv").open(newline="", encoding="utf-8") as file:
        return [figure_from(row) for row in csv.DictReader(file)]


def ship(source_id: str, figures: Iterable[PrintedFigure]) -> None:
    with (_FIGURES / f"{source_id}.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIGURES.columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(flatten(figure) for figure in figures)


def figure_from(row: Mapping[Any, Any]) -> PrintedFigure:
    """A flat bronze row; what is empty is missing."""
    values = {name: value for name, value in row.items() if value not in ("", None)}
    # an empty header is a header
    origin = {"column_header": ""} | pick(values, Origin)
    return PrintedFigure.model_validate(pick(values, PrintedFigure) | {"origin": origin})
