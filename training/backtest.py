"""An exam with its rows and scores, kept by what it was made of."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from training.dataset import Data
from training.evaluate import Told, exam, scores
from training.splits import PROTOCOLS, held_out
from twin.core.settings import Settings


@dataclass(frozen=True)
class Exam:
    protocol: str
    rows: pd.DataFrame

    @cached_property
    def scores(self) -> dict[str, Any]:
        return scores(self.rows)


def examined(
    settings: Settings,
    data: Data,
    protocol: str,
    parameters: dict[str, Any] | None,
    code_version: str,
    held: set[str] | None = None,
    told: Told | None = None,
) -> Exam:
    """By one of the protocols, or of the configurations `held` out together. The same exam of the same rows
    by the same code is sat once. Without `parameters` they are searched for in each fold."""
    kept = _place(settings, data, protocol, parameters, code_version, held)
    if kept.is_file():
        return Exam(protocol, pd.read_parquet(kept))
    folds = PROTOCOLS[protocol](data) if held is None else held_out(data, held)
    rows = exam(data, folds, parameters, told)
    kept.parent.mkdir(parents=True, exist_ok=True)
    draft = kept.with_name(f".{kept.name}")
    rows.to_parquet(draft)
    draft.replace(kept)
    return Exam(protocol, rows)


def known(
    settings: Settings, data: Data, protocol: str, parameters: dict[str, Any] | None, code_version: str
) -> Exam | None:
    """An exam of these rows by this code, if it has been sat."""
    kept = _place(settings, data, protocol, parameters, code_version, None)
    return Exam(protocol, pd.read_parquet(kept)) if kept.is_file() else None


def _place(
    settings: Settings,
    data: Data,
    protocol: str,
    parameters: dict[str, Any] | None,
    code_version: str,
    held: set[str] | None,
) -> Path:
    asked = "" if held is None else ",".join(sorted(held))
    told_apart = (protocol, asked, data.digest, code_version, json.dumps(parameters, sort_keys=True))
    key = hashlib.sha256("|".join(told_apart).encode()).hexdigest()[:16]
    return settings.home / "backtests" / f"{protocol}-{key}.parquet"
