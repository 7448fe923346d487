"""Prometheus' own parser reads what a home tells."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from typer.testing import CliRunner

from features.lake import Lake
from training.divergence import Judged, begun
from training.sync import Watched
from twin.app.cli import app
from twin.app.journal import noted
from twin.app.landing import Landing
from twin.app.metrics import home_metrics
from twin.app.watching import remember
from twin.core.tables import FINDINGS, QUARANTINE

from ..a_finding import ROW


def told(settings):
    text = home_metrics(settings).decode()
    return {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@pytest.fixture
def home(settings, commit, monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    lake = Lake(settings)
    commit(lake, FINDINGS, ROW)
    commit(lake, FINDINGS, ROW, ROW | {"severity": "warning", "source_id": 'with "quotes"\n'})
    commit(lake, QUARANTINE, dict.fromkeys(QUARANTINE.columns) | {"figure_id": "f", "source_id": "s"})
    return settings


def test_tables_findings_files_and_steps(home):
    Landing(home).open()
    (Landing(home).inbox / "waiting.csv").write_text("a")
    for step in ("train_models", "build_features"):
        with noted(home, step):
            pass
    with pytest.raises(ValueError, match="x"), noted(home, "train_models"):
        raise ValueError("x")
    found = told(home)
    assert found["twin_table_rows", "findings"] == 2
    assert found["twin_table_version", "findings"] == 1
    assert found["twin_findings", "a_rule", "error", "s"] == 1
    assert found["twin_findings", "a_rule", "warning", 'with "quotes"\n'] == 1
    assert found["twin_quarantined", "s"] == 1
    assert found["twin_files", "waiting"] == 1
    assert found["twin_step_succeeded", "train_models"] == 0
    assert found["twin_step_succeeded", "build_features"] == 1
    assert 0 <= found["twin_step_last_success_age_seconds", "train_models"] < 60
    assert found["twin_home_free_bytes",] > 0


def test_how_far_a_broker_is_off(home):
    latest = Judged(at="2026-01-01", percent=-30.0)
    state = begun("NATS here").model_copy(update={"status": "diverged", "counted": 9, "latest": latest})
    remember(home, Watched(state=state, version="1"))
    found = told(home)
    assert found["twin_diverged", "NATS here"] == 1
    assert found["twin_divergence_percent", "NATS here"] == -30


def test_damage_is_told_and_costs_the_other_figures_nothing(home):
    (Path(Lake(home).uri(FINDINGS).removeprefix("file://")) / "_delta_log" / f"{1:020}.json").write_text("")
    found = told(home)
    assert found["twin_table_damaged", "findings"] == 1
    assert found["twin_table_damaged", "quarantine"] == 0
    assert found["twin_metrics_part_failed", "findings"] == 1
    assert found["twin_metrics_part_failed", "files"] == 0


def test_an_empty_home_and_the_command(settings):
    assert told(settings)["twin_metrics_part_failed", "tables"] == 0
    assert not settings.home.exists()
    answer = CliRunner().invoke(app, ["metrics"])
    assert answer.exit_code == 0
    assert "twin_files" in answer.output


def test_the_page_tells_them_beside_its_own(home):
    from starlette.testclient import TestClient

    from twin.app.page.server import create_app

    asking = TestClient(create_app(home), base_url="http://127.0.0.1")
    answer = asking.get("/metrics")
    assert answer.status_code == 200
    names = {family.name for family in text_string_to_metric_families(answer.text)}
    assert {"twin_table_rows", "twin_findings", "twin_files"} <= names
    (Path(Lake(home).uri(FINDINGS).removeprefix("file://")) / "_delta_log" / f"{1:020}.json").write_text("")
    answer = asking.get("/api/findings")
    assert answer.status_code == 503
    assert "twin repair findings" in answer.json()["problem"]
