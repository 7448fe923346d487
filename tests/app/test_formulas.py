"""What strangers wrote, in the CSV files that a person opens."""

from __future__ import annotations

import csv
import io
import json
import sys

import pyarrow as pa
from hypothesis import HealthCheck, given
from hypothesis import settings as few
from hypothesis import strategies as st
from pyarrow import parquet

from training.batch import Asked
from twin.app.describing import flat_example
from twin.app.exporting import export_csv
from twin.app.predicting import answer_chunk, read_back
from twin.app.requests import read_chunks
from twin.core.prediction import THROUGHPUT, Answers
from twin.core.spreadsheets import bared
from twin.sources.files import read_file

_IDS = st.text("'=+-@\t ＝\"0.5ea,;\r\n", min_size=1, max_size=6).filter(str.strip)
GOOD = flat_example("message_flow")


class Excused:
    """Stands in for the registry: has an excuse for everything."""

    def answer(self, columns, target, predictor):
        answers = Answers.none(columns.size, predictor, target, 0)
        answers.excuse[:] = "=excuse"
        return answers


def _answered(folder, texts):
    file = folder / "asked.parquet"
    rows = {"request_id": texts, **{name: [value] * len(texts) for name, value in GOOD.items()}}
    parquet.write_table(pa.table(rows), file)
    (chunk,) = read_chunks(file)
    return answer_chunk(chunk, folder / "answers.csv", Asked(Excused(), ("hybrid",), (THROUGHPUT,)))


@few(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(texts=st.lists(_IDS, min_size=1, max_size=4))
def test_ids_come_back_from_answers_and_rejects(tmp_path, texts):
    told = _answered(tmp_path, texts)
    back = [row["request_id"] for row in read_back(told.answers)]
    rejected = [row["request_id"] for row in read_back(told.rejects)] if told.rejects else []
    assert sorted(back + rejected) == sorted(texts)
    with told.answers.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert all(not cell.startswith(("=", "@", "+", "\t", "\r")) for row in rows for cell in row.values())
    assert {row["excuse"] for row in rows} <= {"'=excuse"}


@few(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(texts=st.lists(_IDS, min_size=1, max_size=4, unique_by=bared))
def test_ids_of_our_own_file_of_answers_ask_again_as_they_are(tmp_path, texts):
    """A file with ids that we wrote is read as requests: the same ids."""
    told = _answered(tmp_path, texts)
    (again,) = read_chunks(told.answers)
    assert list(again.ids) == texts


@few(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(rows=st.lists(st.tuples(st.text(), st.floats(allow_nan=False)), max_size=4))
def test_an_exported_table_comes_back(rows):
    texts, values = zip(*rows, strict=True) if rows else ((), ())
    table = pa.table({"text": pa.array(texts, pa.string()), "value": pa.array(values, pa.float64())})
    written, kept = io.StringIO(newline=""), sys.stdout
    sys.stdout = written
    try:
        export_csv(table)
    finally:
        sys.stdout = kept
    found = list(csv.reader(io.StringIO(written.getvalue(), newline="")))
    assert [(bared(text), float(value)) for text, value in found[1:]] == rows


def test_measurements_of_a_product_like_a_formula_are_taken_in_as_exported(tmp_path):
    file = tmp_path / "own.csv"
    exported = {
        "family": "request_reply", "os": "linux", "machine": "'@box", "cpus": 4, "product": "'=cmd()",
        "version": "1", "message_bytes": 100, "persistent": "true", "clients": 2,
        "metric": "throughput_msgs_per_s", "value": -5, "published_at": "2024-11-05",
    }  # fmt: skip
    with file.open("w", newline="") as out:
        writer = csv.DictWriter(out, exported)
        writer.writeheader()
        writer.writerow(exported)
    (figure,) = read_file(file).figures
    said = json.loads(figure.row_keys)
    assert (said["product"], said["machine"]) == ("=cmd()", "@box")
    assert figure.origin.printed == "-5"
