"""The champion of the registry as it is served: loaded once, followed when another takes its place."""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from twin.app.serving.measured import predictions_made
from twin.core.settings import Settings

if TYPE_CHECKING:
    from mlflow.pyfunc import PyFuncModel

    from training.registry import Registry

MOST_ROWS = 10_000
LOOK_EVERY_S = 15.0

log = logging.getLogger("twin.serving")


class CountedModel:
    """A model as MLflow's scoring asks it: with a limit, counted, and without the inside of what fails."""

    def __init__(self, model: PyFuncModel) -> None:
        self._model = model
        self.metadata = model.metadata
        self.input_schema = model.metadata.get_input_schema()

    def predict(self, data: Any, params: dict[str, Any] | None = None) -> Any:
        from mlflow.exceptions import INVALID_PARAMETER_VALUE, MlflowException

        rows = len(data)
        if rows > MOST_ROWS:
            raise MlflowException(
                f"{rows:,} rows are more than the {MOST_ROWS:,} of one request: "
                "`twin predict` takes any number",
                error_code=INVALID_PARAMETER_VALUE,
            )
        started = time.perf_counter()
        try:
            found = self._model.predict(data, params=params)
        except MlflowException:
            predictions_made(0, 0, rows, time.perf_counter() - started)
            raise
        except Exception:
            log.exception("the model failed")
            raise MlflowException("that did not work; the log of the serving says why") from None
        rejected = found.attrs.get("rejected", 0) if hasattr(found, "attrs") else 0
        without = int(found["excuse"].notna().sum()) if "excuse" in getattr(found, "columns", ()) else 0
        predictions_made(len(found) - without, without - rejected, rejected, time.perf_counter() - started)
        return found


@dataclass(frozen=True)
class Served:
    version: str
    model: CountedModel


class Champion:
    """Requests are answered by what is loaded; a successor is loaded and tried beside them."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._registry: Registry | None = None
        self._stopping = threading.Event()
        self.served: Served | None = None

    def follow(self) -> None:
        """Until `stop`, in a thread of its own."""
        while True:
            self.look()
            if self._stopping.wait(LOOK_EVERY_S):
                return

    def stop(self) -> None:
        self._stopping.set()

    def look(self) -> None:
        """Whatever goes wrong here, what is served stays."""
        try:
            version = self._newest()
            if version is not None and (self.served is None or version != self.served.version):
                self.served = Served(version, _loaded(version))
                log.info("version %s is served", version)
        except Exception as error:
            # its kind and first line: the rest may have what a server elsewhere answered
            log.warning("the champion cannot be looked up or loaded: %s", str(error).partition("\n")[0])

    def _newest(self) -> str | None:
        from training.registry import CHAMPION, Registry, never_used

        if never_used(self._settings):
            return None
        self._registry = self._registry or Registry(self._settings)
        champion = self._registry.version_of(CHAMPION)
        return str(champion.version) if champion else None


def _loaded(version: str) -> CountedModel:
    import mlflow

    from training.registry import MODEL

    model = mlflow.pyfunc.load_model(f"models:/{MODEL}/{version}")
    if model.input_example is not None:
        # compiles what the first answer needs, and shows that there is one
        model.predict(model.input_example)
    return CountedModel(model)
