"""The registered model as MLflow loads it: this file and JSON files; nothing is unpickled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from mlflow.exceptions import INVALID_PARAMETER_VALUE, MlflowException
from mlflow.models import set_model
from mlflow.pyfunc import PythonModel

from training.batch import FIELD, REASON, ROW, Asked
from training.model import HYBRID, PREDICTORS, TwinModel
from twin.core.checking import as_texts
from twin.core.prediction import THROUGHPUT
from twin.core.tables import PREDICTIONS, TARGETS

_ALL = "all"


class ServedTwin(PythonModel):
    def load_context(self, context: Any) -> None:
        self.model = TwinModel.load(Path(context.artifacts["model"]))

    def predict(
        self,
        context: Any,  # noqa: ARG002
        model_input: pd.DataFrame,
        params: dict[str, Any] | None = None,
    ) -> pd.DataFrame:
        """The rows of a batch request's answers; what is wrong with a request is its excuse."""
        asked = Asked(
            self.model,
            _chosen(params, "predictor", PREDICTORS, HYBRID),
            _chosen(params, "target", TARGETS, THROUGHPUT),
        )
        requests = pd.DataFrame({name: as_texts(model_input[name].tolist()) for name in model_input.columns})
        numbers = np.arange(1, len(requests) + 1)
        ids = requests.pop("request_id") if "request_id" in requests else pd.Series([None] * len(requests))
        requests[ROW] = numbers
        requests["request_id"] = ids.where(ids.notna(), pd.Series(numbers).astype(str))
        found = asked.answer(requests)
        rejected = found[REASON].notna()
        found["excuse"] = found["excuse"].where(~rejected, found[FIELD] + ": " + found[REASON])
        for name, asked_for in (("predictor", asked.predictors[0]), ("target", asked.targets[0])):
            found[name] = found[name].where(~rejected, asked_for)
        answers = found[list(PREDICTIONS.columns)]
        # which of the excuses are about the request: for who counts them
        answers.attrs["rejected"] = int(rejected.sum())
        return answers


def _chosen(
    params: dict[str, Any] | None, name: str, known: tuple[str, ...], default: str
) -> tuple[str, ...]:
    choice = (params or {}).get(name, default)
    if choice == _ALL:
        return known
    if choice not in known:
        raise MlflowException(
            f"{name}: {choice!r} is none of {', '.join((*known, _ALL))}", error_code=INVALID_PARAMETER_VALUE
        )
    return (choice,)


set_model(ServedTwin())
