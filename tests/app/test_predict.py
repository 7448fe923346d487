"""`twin predict` on good and bad request files."""

from __future__ import annotations

import csv
import json

import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from twin.app.describing import flat_example
from twin.app.predicting import answer_file
from twin.app.requests import BadRequestFile, read_requests
from twin.core.prediction import Excuse, Prediction
from twin.core.tables import PREDICTIONS

GOOD = flat_example("message_flow")


class MadeUpPredictor:
    """Stands in for the registry: the message size is the rate, and Solaris the only system it knows."""

    def predict(self, configurations):
        return [
            Prediction(
                target="throughput_msgs_per_s", value=c.workload.message_bytes,
                lo50=1, hi50=2, lo90=0, hi90=3,
                predictor="made_up", in_domain=True, model_version="1", table_version=0,
            )
            if c.platform.os == "solaris"
            else Excuse(predictor="made_up", excuse="not measured")
            for c in configurations
        ]  # fmt: skip


def write_csv(path, rows):
    columns = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)
    return path


def rejects(path):
    return [(reject.row, reject.field, reject.reason) for reject in read_requests(path).rejects]


def test_answers_come_in_the_order_of_the_requests(tmp_path):
    rows = [GOOD | {"request_id": f"r{size}", "message_bytes": size} for size in (9, 3, 7)]
    answered = answer_file(write_csv(tmp_path / "q.csv", rows), None, MadeUpPredictor)
    assert answered.answers == tmp_path / "q.predictions.csv"
    assert answered.rejects is None
    written = list(csv.DictReader(answered.answers.open()))
    assert [(row["request_id"], float(row["value"])) for row in written] == [("r9", 9), ("r3", 3), ("r7", 7)]
    assert list(written[0]) == list(PREDICTIONS.columns)


def test_bad_rows_are_rejected_and_good_ones_answered(tmp_path):
    without_size = {name: value for name, value in GOOD.items() if name != "message_bytes"}
    path = write_csv(
        tmp_path / "q.csv",
        [
            GOOD,
            GOOD | {"cpus": "four"},
            GOOD | {"colour": "red"},
            without_size,
            GOOD | {"cpus": 0},
            GOOD | {"subscribers": 3},
            GOOD | {"family": "poetry"},
            GOOD | {"massage_bytes": 3},
            GOOD | {"os": "aix"},
        ],
    )
    answered = answer_file(path, tmp_path / "a.jsonl", MadeUpPredictor)
    assert [row["request_id"] for row in answered.rows] == ["1", "9"]
    assert answered.rows[1]["excuse"] == "not measured"
    assert answered.rejects == tmp_path / "a.rejects.jsonl"
    told = [json.loads(line) for line in answered.rejects.read_text().splitlines()]
    assert [(one["row"], one["field"]) for one in told] == [
        (2, "cpus"), (3, "colour"), (4, "message_bytes"), (5, "cpus"), (6, "subscribers"), (7, "family"),
        (8, "massage_bytes"),
    ]  # fmt: skip
    reasons = [one["reason"] for one in told]
    assert reasons[0].startswith("'four': Input should be a valid integer")
    assert reasons[1] == "unknown column"
    assert reasons[2] == "missing: Message body without headers [bytes]"
    assert reasons[3].endswith("(allowed: >= 1, <= 1024)")
    assert reasons[4] == "does not apply to message_flow"
    assert "message_flow, publication" in reasons[5]
    assert reasons[6] == "unknown column; did you mean message_bytes?"


def test_two_rows_cannot_have_the_same_request_id(tmp_path):
    path = write_csv(tmp_path / "q.csv", [GOOD | {"request_id": "a"}, GOOD | {"request_id": "a"}])
    assert rejects(path) == [(2, "request_id", "another row has the same request_id")]


def test_a_row_with_too_many_cells_is_rejected(tmp_path):
    path = write_csv(tmp_path / "q.csv", [GOOD])
    path.write_text(path.read_text() + path.read_text().splitlines()[1] + ",extra\n")
    assert rejects(path) == [(2, "", "the row has more cells than the header")]


def test_a_line_that_is_no_json_is_rejected_alone(tmp_path):
    path = tmp_path / "q.jsonl"
    path.write_text(json.dumps(GOOD) + "\n{oops\n[1]\n" + json.dumps(GOOD) + "\n")
    assert [row for row, _, _ in rejects(path)] == [2, 3]
    assert len(read_requests(path).asked) == 2


def test_parquet_in_and_out(tmp_path):
    path = tmp_path / "q.parquet"
    rows = pd.DataFrame([GOOD, flat_example("publication")])  # numbers that a family lacks become NaN
    parquet.write_table(pa.Table.from_pandas(rows), path)
    answered = answer_file(path, None, MadeUpPredictor)
    assert parquet.read_table(answered.answers).column_names == list(PREDICTIONS.columns)
    assert len(answered.rows) == 2


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.csv", b"", "holds no request"),
        ("header.csv", b"os,cpus\n", "holds no request"),
        ("twice.csv", b"os,os\na,b\n", "names a column twice: os"),
        ("latin.csv", "os\nSolarís\n".encode("latin-1"), "not UTF-8"),
        ("broken.parquet", b"nonsense", "not a Parquet file"),
        ("strange.xlsx", b"x", "is none of .csv, .jsonl, .parquet"),
    ],
)
def test_a_file_that_holds_nothing_to_answer_is_refused(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(BadRequestFile, match=message):
        read_requests(path)


def test_a_file_that_does_not_exist_is_refused(tmp_path):
    with pytest.raises(BadRequestFile, match="does not exist"):
        read_requests(tmp_path / "nothing.csv")


def test_rejects_of_an_earlier_try_do_not_stay(tmp_path):
    path = write_csv(tmp_path / "q.csv", [GOOD | {"cpus": "four"}, GOOD])
    first = answer_file(path, None, MadeUpPredictor)
    assert first.rejects.exists()
    answer_file(write_csv(path, [GOOD]), None, MadeUpPredictor)
    assert not first.rejects.exists()
