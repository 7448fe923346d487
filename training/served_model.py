"""The registered model as MLflow loads it: this file and two JSON files; nothing is unpickled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
from mlflow.models import set_model
from mlflow.pyfunc import PythonModel

from training.regression import ThroughputRegression


class ServedThroughput(PythonModel):
    def load_context(self, context: Any) -> None:
        self._model = ThroughputRegression.load(Path(context.artifacts["model"]))

    def predict(
        self,
        context: Any,  # noqa: ARG002
        model_input: pd.DataFrame,
        params: dict[str, Any] | None = None,  # noqa: ARG002
    ) -> pd.DataFrame:
        return self._model.predict_flat(model_input)


set_model(ServedThroughput())
