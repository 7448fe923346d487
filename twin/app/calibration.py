"""The analytic model in the lake: fitted when its figures or its physics changed, loaded to answer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import TypeAdapter

from twin.calibration.calibrating import fit_all, fitted_rows
from twin.calibration.calibration import Calibration, calibration_of, fitted_on, residuals_of
from twin.calibration.observations import observations_of
from twin.calibration.predictor import AnalyticPredictor
from twin.core.fitted import FittedSystem, Residual
from twin.core.outside import read_bytes
from twin.core.settings import Settings
from twin.core.tables import CALIBRATIONS, DEMANDS, MEASUREMENTS, RESIDUALS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from features.lake import Lake, Written

_CALIBRATIONS = TypeAdapter(list[Calibration])
# some hundred times what the systems of today take
_MOST_BYTES = 64 * 2**20


class NotCalibrated(Exception):
    """There is no fitted model yet."""


def calibrate_lake(lake: Lake, spark: SparkSession) -> list[Written]:
    """Fit every system on the measurements; what was fitted on the same figures before is left as it is."""
    from features.bronze import rows_frame

    measurements = lake.arrow(MEASUREMENTS).to_pylist()
    observed = observations_of(measurements)
    keys = {one.system.name: fitted_on(one) for one in fitted_rows(observed)}
    if _stored_keys(lake) == keys:
        return [lake.written(table) for table in (DEMANDS, CALIBRATIONS, RESIDUALS)]
    fits = fit_all(observed)
    calibrations = [calibration_of(one) for one in fits]
    printed = {row["figure_id"]: row for row in measurements}
    demands = [demand for one in calibrations for demand in one.demands]
    documents = [
        FittedSystem(
            system=one.system, fitted_on=one.fitted_on, rows_used=one.rows, document=one.model_dump_json()
        )
        for one in calibrations
    ]
    residuals = [
        Residual(
            **{
                name: printed[figure_id][name] for name in ("source_id", "line", "printed", "metric", "value")
            },
            figure_id=figure_id,
            system=one.system,
            fitted_value=fitted,
            deviations=deviations,
        )
        for one, by in zip(calibrations, fits, strict=True)
        for figure_id, fitted, deviations in residuals_of(by, one)
    ]
    return [
        lake.replace(DEMANDS, rows_frame(spark, DEMANDS, demands)),
        lake.replace(RESIDUALS, rows_frame(spark, RESIDUALS, residuals)),
        # last: its keys say that the other two are there
        lake.replace(CALIBRATIONS, rows_frame(spark, CALIBRATIONS, documents)),
    ]


def analytic_predictor(settings: Settings, file: Path | None = None) -> AnalyticPredictor:
    """From the lake, or from a file that `twin calibrate --out` wrote."""
    from features.lake import Lake, NoSuchTable

    if file is not None:
        return AnalyticPredictor(_by_system(_CALIBRATIONS.validate_json(read_bytes(file, _MOST_BYTES))))
    lake = Lake(settings)
    try:
        documents = lake.arrow(CALIBRATIONS)["document"].to_pylist()
        version = lake.version(MEASUREMENTS)
    except NoSuchTable as error:
        raise NotCalibrated("nothing has been calibrated yet: run `make run` or `twin ingest`") from error
    fitted = [Calibration.model_validate_json(document) for document in documents]
    return AnalyticPredictor(_by_system(fitted), version)


def write_calibrations(file: Path, calibrations: list[Calibration]) -> None:
    file.write_bytes(_CALIBRATIONS.dump_json(calibrations, indent=1))


def _by_system(calibrations: list[Calibration]) -> dict[str, Calibration]:
    return {one.system: one for one in calibrations}


def _stored_keys(lake: Lake) -> dict[str, str]:
    from features.lake import NoSuchTable

    try:
        stored = lake.arrow(CALIBRATIONS)
    except NoSuchTable:
        return {}
    return dict(zip(stored["system"].to_pylist(), stored["fitted_on"].to_pylist(), strict=True))
