"""A table that nobody here has prepared: in by one command, learned by another, foretold with honest doubt.

Its products, machines and rates are invented (`tests/foreign_table.py`), by a law that is not the twin's.
"""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest
from typer.testing import CliRunner

from features.lake import Lake
from training.dataset import Data
from training.registry import champion_model
from twin.app.cli import app
from twin.core.configuration import Configuration
from twin.core.prediction import Prediction
from twin.core.settings import Settings

from ..foreign_table import MACHINES, PRODUCTS, table

pytestmark = pytest.mark.long

ROWS = 300
HELD_BACK = 100


@pytest.fixture(scope="module")
def printed():
    """Rows that go in, and others of the same grid that nobody is shown."""
    header, *rows = table(ROWS + HELD_BACK, seed=2).splitlines()
    chosen = np.random.default_rng(3).permutation(len(rows))
    shown, kept = (
        "\n".join([header, *(rows[at] for at in np.sort(part))]) for part in np.split(chosen, [ROWS])
    )
    return shown, list(csv.DictReader(io.StringIO(kept)))


@pytest.fixture(scope="module")
def home(tmp_path_factory, printed, request):
    home = tmp_path_factory.mktemp("foreign")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TWIN_HOME", str(home))
        request.getfixturevalue("spark")
        (home / "table.csv").write_text(printed[0])

        def twin(*arguments):
            done = CliRunner().invoke(app, [str(argument) for argument in arguments])
            assert done.exit_code == 0, done.output
            return done.stdout

        twin("ingest", home / "table.csv", "--source", "foreign")
        yield Settings.from_environment(), json.loads(twin("train", "--json"))


def test_every_row_is_learned_from_by_its_product_on_its_machine(home):
    settings, trained = home
    data = Data.of(Lake(settings))
    assert len(data.rows) == len(data.figures) == ROWS
    assert set(data.rows["exam_group"]) == {f"{one} on {other}" for one in PRODUCTS for other in MACHINES}
    assert (trained["changed"], trained["champion"], trained["reason"]) == (True, True, "the first model")


def test_its_own_exam_is_honest(home):
    _, trained = home
    prefix = "throughput_msgs_per_s/harness-foreign/hybrid/"
    scores = {name.removeprefix(prefix): value for name, value in trained["scores"].items()}
    assert (scores["n"], scores["n_excused"]) == (ROWS, 0)
    # 5% of noise alone makes a median of 3.4%
    assert scores["median_ape"] < 13
    assert 0.84 <= scores["coverage90"] <= 0.98


def test_rows_that_nobody_was_shown_lie_in_their_intervals(home, printed):
    settings, _ = home
    asked = [
        Configuration.from_flat(
            {name: value for name, value in row.items() if name not in ("metric", "value", "published_at")}
        )
        for row in printed[1]
    ]
    answers = champion_model(settings).predict(asked)
    assert all(isinstance(one, Prediction) for one in answers)
    measured = np.array([float(row["value"]) for row in printed[1]])
    off = np.abs(np.array([one.value for one in answers]) / measured - 1)
    inside = [one.lo90 <= value <= one.hi90 for one, value in zip(answers, measured, strict=True)]
    assert np.median(off) < 0.13
    # three standard deviations of a hundred tries below nine in ten
    assert np.mean(inside) >= 0.81
    strange = asked[0].model_copy(
        update={"software": asked[0].software.model_copy(update={"product": "Synthetic Newcomer"})}
    )
    (unknown,) = champion_model(settings).predict([strange])
    assert isinstance(unknown, Prediction)
    assert np.log(unknown.hi90 / unknown.lo90) > 3 * np.log(answers[0].hi90 / answers[0].lo90)
    assert "product = Synthetic Newcomer" in str(unknown.domain_reason)
