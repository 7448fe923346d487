"""The figures that ship with the platform: what reading each catalogued document gave."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path

from twin.core.fields import flatten, pick
from twin.core.measurement import Origin, PrintedFigure
from twin.core.tables import FIGURES

_FIGURES = Path(__file__).parent / "figures"


def shipped_figures(source_id: str) -> list[PrintedFigure]:
    with (_FIGURES / f"{source_id}.csv").open(newline="") as file:
        return [
            PrintedFigure(
                figure_id=row["figure_id"],
                origin=Origin.model_validate(pick(row, Origin)),
                row_keys=row["row_keys"],
            )
            for row in csv.DictReader(file)
        ]


def ship(source_id: str, figures: Iterable[PrintedFigure]) -> None:
    with (_FIGURES / f"{source_id}.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, FIGURES.columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(flatten(figure) for figure in figures)
