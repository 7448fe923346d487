"""Every reader of what comes from outside, with inputs to start from and the refusals that it documents.

A target takes bytes and returns, or raises one of its refusals; anything else is a fault. It never touches
the network, a model or Spark: what answers requests here is a stand-in that has an excuse for everything.
"""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from features.predicates import BadPredicate, checked
from training.batch import Asked, block_of
from twin.app.anchoring import read_anchors
from twin.app.asking import BadQuestion, read_configuration, read_variation, varied
from twin.app.backup import FORMAT
from twin.app.costs import BadCosts, read_costs, shipped_text
from twin.app.describing import example_yaml, flat_example
from twin.app.requests import BadRequestFile, read_chunks
from twin.app.restore import BadBackup
from twin.core.configuration import Configuration
from twin.core.outside import BadInput
from twin.core.prediction import THROUGHPUT, Answers
from twin.core.settings import Settings
from twin.core.spreadsheets import bared, shielded
from twin.core.tables import FINDINGS, MEASUREMENTS
from twin.core.tables import TARGETS as METRICS
from twin.sources.declarations import reports
from twin.sources.document import Document
from twin.sources.documents import Refused
from twin.sources.files import kind_of
from twin.sources.harness.reading import read_harness
from twin.sources.harness.runs import read_runs
from twin.sources.harness.sidecar import sidecar_of
from twin.sources.interpreting import BadReference, interpret
from twin.sources.layouts import MissingTable
from twin.sources.reading import MissingStatement, read_figures, read_unknown, recognise

from ..sources.conftest import REPORT, TEXT

_RECORDINGS = Path(__file__).resolve().parents[1] / "sources" / "recordings"
_SAMPLES = Path(__file__).resolve().parents[2] / "twin" / "app" / "samples"
_EXAMPLE = flat_example("message_flow")
_BASE = Configuration.from_flat(_EXAMPLE)
_HUB = flat_example("rules_hub")


@dataclass(frozen=True)
class Target:
    run: Callable[[bytes], object]
    refusals: tuple[type[Exception], ...]
    seeds: Sequence[bytes]


class Excused:
    """Stands in for a model."""

    model = None

    def answer(self, columns: Any, target: str, predictor: str) -> Answers:
        answers = Answers.none(columns.size, predictor, target, 0)
        answers.excuse[:] = "nobody knows"
        return answers

    def predictors(self, _: str) -> tuple[str, ...]:
        return ("hybrid",)


@cache
def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="fuzzing-"))


def _file(name: str, raw: bytes) -> Path:
    path = _folder() / name
    path.write_bytes(raw)
    return path


@cache
def _archive() -> Path:
    """A folder whose description says what files of runs lack."""
    folder = _folder() / "archive"
    folder.mkdir()
    (folder / "archive.yaml").write_bytes((_RECORDINGS / "archive.yaml").read_bytes())
    said = "producers: 1\nconsumers: 1\nmessage_bytes: 100\npersistent: false\n"
    for suffix in (".csv", ".json"):
        (folder / f"runs{suffix}.yaml").write_text(said)
    return folder


@cache
def _settings() -> Settings:
    home = _folder() / "home"
    return replace(Settings.from_environment(), home=home, lake_uri=(home / "lake").as_uri())


def _report(raw: bytes) -> object:
    document = Document.load(_file("report.txt", raw))
    declared = recognise(document, {REPORT.source_id: REPORT, **reports()})
    if declared is None:
        return read_unknown(document, "unknown")
    return interpret(read_figures(document, declared), declared)


def _pdf(raw: bytes) -> object:
    from twin.sources.pdf import lines_of

    return lines_of(raw)


def _harness(raw: bytes) -> object:
    return read_harness(_file("results.csv", raw))


def _described(raw: bytes) -> object:
    return sidecar_of(_file("described.csv.yaml", raw).with_name("described.csv"))


def _runs(suffix: str) -> Callable[[bytes], object]:
    def run(raw: bytes) -> object:
        path = _file(f"{_archive().name}/runs{suffix}", raw)
        kind_of(path)
        return read_runs(path)

    return run


def _compared(raw: bytes) -> object:
    from twin.harness.measured import measured

    return measured([_file("compared.jsonl", raw)])


def _kind(raw: bytes) -> object:
    name, _, content = raw.partition(b"\n")
    suffixes = (".txt", ".md", ".pdf", ".csv", ".log", ".json", ".jsonl", ".parquet", ".zip", "")
    return kind_of(_file(f"some{suffixes[len(name) % len(suffixes)]}", content))


def _configuration(raw: bytes) -> object:
    return read_configuration(str(_file("configuration.yaml", raw)), _settings())


def _varied(raw: bytes) -> object:
    return varied(_BASE, [read_variation(raw.decode(errors="replace"))])


def _boxes(raw: bytes) -> object:
    from twin.app.commands.planning import _boxes

    return _boxes(raw.decode(errors="replace"))


def _costs(raw: bytes) -> object:
    return read_costs(_file("costs.yaml", raw))


def _requests(suffix: str) -> Callable[[bytes], object]:
    def run(raw: bytes) -> object:
        asked = Asked(Excused(), ("hybrid",), (THROUGHPUT,))
        for chunk in read_chunks(_file(f"requests{suffix}", raw), 100):
            found = asked.answer(chunk.frame())
            for form in (".csv", ".jsonl"):
                block_of(found, form)
        return None

    return run


def _anchors(raw: bytes) -> object:
    return read_anchors(_file("anchors.jsonl", raw))


def _upload(raw: bytes) -> object:
    from twin.app.page.uploads import answer_upload

    name, _, content = raw.partition(b"\n")
    twin: Any = Excused()
    return answer_upload(twin, name.decode(errors="replace"), content, "hybrid", METRICS[0])


def _calibration(raw: bytes) -> object:
    from twin.app.calibration import analytic_predictor

    return analytic_predictor(_settings(), _file("calibration.json", raw))


def _predicate(raw: bytes) -> object:
    return checked(raw.decode(errors="replace"), MEASUREMENTS)


@cache
def _lake() -> Any:
    import pyarrow as pa
    from deltalake import write_deltalake

    from features.arrow import arrow_schema
    from features.lake import Lake

    lake = Lake(_settings())
    place = Path(lake.uri(FINDINGS).removeprefix("file://"))
    place.mkdir(parents=True)
    rows = [{"rule": "r", "figure_id": "f", "line": 1, "severity": "error", "source_id": "s"}]
    write_deltalake(str(place), pa.Table.from_pylist(rows, arrow_schema(FINDINGS)))
    return lake


def _asked_of_a_table(raw: bytes) -> object:
    return _lake().arrow(FINDINGS, where=raw.decode(errors="replace"))


@cache
def _page() -> Any:
    from starlette.testclient import TestClient

    from twin.app.page.server import create_app

    return TestClient(create_app(_settings()), base_url="http://127.0.0.1", raise_server_exceptions=True)


def _question(raw: bytes) -> object:
    """The first byte chooses what is asked."""
    path = ("/api/curve", "/api/size", "/api/advice")[raw[0] % 3 if raw else 0]
    answer = _page().post(path, content=raw[1:], headers={"content-type": "application/json"})
    if answer.status_code >= 500 and answer.status_code != 503:
        raise AssertionError(f"{path} answered {answer.status_code}: {answer.text}")
    return answer.json()


def _manifest(raw: bytes) -> object:
    from twin.app.restore import _checked

    folder = _folder() / "backup"
    folder.mkdir(exist_ok=True)
    (folder / "manifest.json").write_bytes(raw)
    return _checked(folder)


def _token(raw: bytes) -> object:
    from twin.app.serving.tokens import Tokens

    tokens = Tokens({"reader": "r" * 30, "operator": "o" * 30})
    # servers hand headers on in this encoding
    role = tokens.role_of(raw.decode("latin-1"))
    if role is not None and role[0].encode() * 30 not in raw and b"asic" not in raw.lower():
        raise AssertionError("somebody was let in without a token")
    return role


def _formula(raw: bytes) -> object:
    text = raw.decode(errors="replace")
    if bared(shielded(text)) != text:
        raise AssertionError("a text did not come back")
    return text


def _recorded(*names: str) -> list[bytes]:
    return [(_RECORDINGS / name).read_bytes() for name in names]


def _csv_of(row: dict[str, Any]) -> bytes:
    return (",".join(row) + "\n" + ",".join(str(value) for value in row.values()) + "\n").encode()


def _parquet_of(row: dict[str, Any]) -> bytes:
    import pyarrow as pa
    from pyarrow import parquet

    out = io.BytesIO()
    parquet.write_table(pa.Table.from_pylist([row, row]), out, compression="none")
    return out.getvalue()


def _made_pdf() -> bytes:
    from reportlab.lib.styles import getSampleStyleSheet
    from reportlab.platypus import Paragraph, SimpleDocTemplate, Table

    out = io.BytesIO()
    grid = Table([["Size", "Rate"], ["1", "2"]], style=[("GRID", (0, 0), (-1, -1), 1, 0)])
    words = Paragraph("Words", getSampleStyleSheet()["Normal"])
    SimpleDocTemplate(out, pageCompression=0).build([words, grid])
    return out.getvalue()


_ASK = {"configuration": _EXAMPLE}
_PRICES = {"currency": "x", "box": 1, "cpu": 1, "licence_unit": 1, "licence_units_per_cpu": 1}
_SIZE = {
    "configuration": _HUB,
    "target": 300,
    "boxes": [1, 2],
    "options": {"cpus": [2, 4]},
    "costs": _PRICES,
}
_MEASURED = {
    "family": "request_reply",
    "os": "linux",
    "machine": "box",
    "cpus": 4,
    "product": "P",
    "version": "1",
    "message_bytes": 100,
    "persistent": "true",
    "clients": 2,
    "metric": THROUGHPUT,
    "value": 5,
    "published_at": "2024-11-05",
}
_LOGS = (
    "mqcph.log",
    "perfharness-basic.log",
    "perfharness-response.log",
    "perfharness-rolling.log",
    "perftest-2.20.log",
    "perftest-old.log",
)
_PREDICATES = (
    b"metric = 'throughput_msgs_per_s' AND persistent",
    b"NOT (value BETWEEN 1 AND 2 OR os IN ('aix', 'x'))",
    b"lower(os) LIKE '%x' AND round(value, 1) <> -2.5e3",
    b"published_at < DATE '2010-01-01'",
)
_RUN = (
    b"line > 0 AND severity = 'error'",
    b"regexp_like(rule, '^r') OR line / 2 = 1",
    b"coalesce(message, 'x') ILIKE 'X'",
)


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


def targets() -> dict[str, Target]:
    sample = _SAMPLES / "cphtestp" / "results.csv"
    described = sample.with_name("results.csv.yaml").read_bytes()
    unread = (BadInput, MissingTable, MissingStatement, BadReference)
    refused, bad_file, bad_question = (Refused,), (BadRequestFile,), (BadQuestion,)
    return {
        "report": Target(_report, unread, [TEXT.encode(), b"a\tb\n1\t2\n"]),
        "pdf": Target(_pdf, (BadInput,), [_made_pdf()]),
        "table of a harness": Target(_harness, refused, [sample.read_bytes(), _csv_of(_MEASURED)]),
        "sidecar": Target(_described, refused, [described, *_recorded("archive.yaml")]),
        "runs .log": Target(_runs(".log"), refused, _recorded(*_LOGS)),
        "runs .csv": Target(_runs(".csv"), refused, _recorded("perftest.csv")),
        "runs .json": Target(_runs(".json"), refused, _recorded("perftest.json", "openmessaging.json")),
        "runs .jsonl": Target(_runs(".jsonl"), refused, _recorded("twin.jsonl")),
        "runs compared": Target(_compared, refused, _recorded("twin.jsonl")),
        "kind of a file": Target(_kind, (), [b"\n" + TEXT.encode(), b"xxx\n" + _csv_of(_MEASURED)]),
        "configuration": Target(
            _configuration, bad_question, [example_yaml("rules_hub").encode(), _json(_EXAMPLE)]
        ),
        "--vary": Target(_varied, bad_question, [b"cpus=1..8:8", b"message_bytes=100,200", b"os=aix,linux"]),
        "--boxes": Target(_boxes, bad_question, [b"1..4", b"1,2,3"]),
        "costs": Target(_costs, (BadCosts,), [shipped_text().encode()]),
        "calibration": Target(_calibration, (BadInput, ValidationError), [b"[]", b'[{"system": "hub"}]']),
        "requests .csv": Target(
            _requests(".csv"), bad_file, [_csv_of(_EXAMPLE), _csv_of({"request_id": "=1", **_HUB})]
        ),
        "requests .jsonl": Target(
            _requests(".jsonl"), bad_file, [(_SAMPLES / "requests.jsonl").read_bytes(), _json(_HUB)]
        ),
        "requests .parquet": Target(_requests(".parquet"), bad_file, [_parquet_of(_EXAMPLE)]),
        "anchors": Target(_anchors, bad_file, [_json({**_EXAMPLE, THROUGHPUT: 5})]),
        "upload": Target(
            _upload, bad_question, [b"a.csv\n" + _csv_of(_EXAMPLE), b"a.jsonl\n" + _json(_EXAMPLE)]
        ),
        "question to the page": Target(
            _question, (), [b"\0" + _json(_ASK), b"\1" + _json(_SIZE), b"\2" + _json(_ASK)]
        ),
        "predicate": Target(_predicate, (BadPredicate,), _PREDICATES),
        "predicate that is run": Target(_asked_of_a_table, (BadPredicate,), _RUN),
        "manifest of a backup": Target(_manifest, (BadBackup,), [_json({"files": {}, "format": FORMAT})]),
        "token": Target(_token, (), [b"Bearer " + b"r" * 30, b"Basic cmVhZGVyOnJycg==", b"Basic x"]),
        "formula": Target(_formula, (), [b"=1", "'＝1".encode(), b" -5", b"\t@x"]),
    }
