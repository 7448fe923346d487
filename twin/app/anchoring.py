"""The user's own measurements, read from a file and put beside the model."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np

from training.anchors import Anchored
from training.batch import Asked
from training.model import TwinModel
from twin.app.requests import CHUNK, BadRequestFile, read_chunks
from twin.core.checking import check
from twin.core.columns import Columns, Numbers
from twin.core.tables import TARGETS


def anchored(asked: Asked, path: Path) -> tuple[Asked, list[str]]:
    """Who is asked, moved by the anchors; and what is to be said about them."""
    columns, measured = read_anchors(path)
    assert isinstance(asked.by, TwinModel)
    by = Anchored(asked.by, columns, measured)
    remarks = [
        f"anchor in row {at + 1} cannot be used: {reason}"
        for target in measured
        for at, reason in enumerate(by.unused(target))
        if reason is not None
    ]
    return replace(asked, by=by), remarks


def read_anchors(path: Path) -> tuple[Columns, dict[str, Numbers]]:
    """Configurations, and by target the logarithms of what was measured of them."""
    chunks = list(islice(read_chunks(path), 2))
    if len(chunks) > 1:
        raise BadRequestFile(f"{path}: a few measurements are anchors, not more than {CHUNK}")
    (chunk,) = chunks
    values = {target: np.full(len(chunk.ids), np.nan) for target in TARGETS}
    for at, extra in enumerate(chunk.extra):
        for target in values.keys() & (extra or {}).keys():
            values[target][at] = _positive(extra.pop(target), f"{path} row {at + 1}: {target}")
    checked = check(len(chunk.ids), chunk.given, chunk.extra)
    for at, ((field, reason), *_) in checked.problems.items():
        raise BadRequestFile(f"{path} row {at + 1}: {field}: {reason}")
    measured = {target: np.log(numbers) for target, numbers in values.items() if np.isfinite(numbers).any()}
    if not measured:
        raise BadRequestFile(f"{path} measures nothing: it needs a column {' or '.join(TARGETS)}")
    return checked.columns, measured


def _positive(value: object, where: str) -> float:
    try:
        number = float(str(value))
    except ValueError:
        number = np.nan
    if not (np.isfinite(number) and number > 0):
        raise BadRequestFile(f"{where}: {value!r} is not a positive number")
    return number
