"""Request files, good and bad, answered here and on Spark."""

from __future__ import annotations

import csv
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from training.batch import Asked
from twin.app.describing import flat_example
from twin.app.predicting import answer_file, read_back
from twin.app.requests import BadRequestFile, read_chunks
from twin.core.prediction import THROUGHPUT, Answers
from twin.core.tables import PREDICTIONS

GOOD = flat_example("message_flow")


class MadeUp:
    """Stands in for the registry: the message size is the rate, and Solaris the only system it knows."""

    def answer(self, columns, target, predictor):
        answers = Answers.none(columns.size, predictor, target, 0)
        known = columns.is_("os", "solaris")
        answers.value[known] = columns.number("message_bytes")[known]
        for end in ("lo50", "hi50", "lo90", "hi90"):
            getattr(answers, end)[known] = answers.value[known]
        answers.model_version[known] = "1"
        answers.excuse[~known] = "not measured"
        return answers


@pytest.fixture
def answer(settings):
    def call(path, out=None, predictors=("hybrid",), targets=(THROUGHPUT,), **options):
        return answer_file(path, out, settings, lambda: Asked(MadeUp(), predictors, targets), **options)

    return call


def write_csv(path, rows):
    columns = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)
    return path


def rejects(answered):
    return [(one["row"], one["field"], one["reason"]) for one in read_back(answered.rejects)]


def test_answers_come_in_the_order_of_the_requests(answer, tmp_path):
    rows = [GOOD | {"request_id": f"r{size}", "message_bytes": size} for size in (9, 3, 7)]
    answered = answer(write_csv(tmp_path / "q.csv", rows))
    assert answered.answers == tmp_path / "q.predictions.csv"
    assert answered.rejects is None
    written = list(csv.DictReader(answered.answers.open()))
    assert [(row["request_id"], float(row["value"])) for row in written] == [("r9", 9), ("r3", 3), ("r7", 7)]
    assert list(written[0]) == list(PREDICTIONS.columns)


def test_every_predictor_and_target_of_a_request_stand_together(answer, tmp_path):
    path = write_csv(tmp_path / "q.csv", [GOOD, GOOD])
    answered = answer(path, predictors=("hybrid", "nearest"), targets=(THROUGHPUT, "cpu_ms_per_msg"))
    told = [(row["request_id"], row["predictor"], row["target"]) for row in read_back(answered.answers)]
    assert len(told) == 8
    assert [one[0] for one in told] == ["1"] * 4 + ["2"] * 4
    assert len(set(told)) == 8


def test_bad_rows_are_rejected_and_good_ones_answered(answer, tmp_path):
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
    answered = answer(path, tmp_path / "a.jsonl")
    assert (answered.answered, answered.excused, answered.rejected) == (1, 1, 7)
    rows = read_back(answered.answers)
    assert [row["request_id"] for row in rows] == ["1", "9"]
    assert rows[1]["excuse"] == "not measured"
    assert answered.rejects == tmp_path / "a.rejects.jsonl"
    told = rejects(answered)
    assert [(row, field) for row, field, _ in told] == [
        (2, "cpus"), (3, "colour"), (4, "message_bytes"), (5, "cpus"), (6, "subscribers"), (7, "family"),
        (8, "massage_bytes"),
    ]  # fmt: skip
    reasons = [reason for _, _, reason in told]
    assert reasons[0].startswith("'four': Input should be a valid integer")
    assert reasons[1] == "unknown column"
    assert reasons[2] == "missing: Message body without headers [bytes]"
    assert reasons[3].endswith("(allowed: >= 1, <= 1024)")
    assert reasons[4] == "does not apply to message_flow"
    assert "message_flow, publication" in reasons[5]
    assert reasons[6] == "unknown column; did you mean message_bytes?"


def test_two_rows_cannot_have_the_same_request_id(answer, tmp_path):
    path = write_csv(tmp_path / "q.csv", [GOOD | {"request_id": one} for one in "aba"])
    answered = answer(path)
    assert rejects(answered) == [(3, "request_id", "another row has the same request_id")]
    assert answered.answered == 2


def test_a_row_with_too_many_cells_is_rejected(answer, tmp_path):
    path = write_csv(tmp_path / "q.csv", [GOOD])
    path.write_text(path.read_text() + path.read_text().splitlines()[1] + ",extra\n")
    answered = answer(path)
    assert rejects(answered) == [(2, None, "the row has more cells than the header")]


def test_a_row_with_too_few_cells_misses_the_others(answer, tmp_path):
    path = write_csv(tmp_path / "q.csv", [GOOD])
    path.write_text(path.read_text() + "solaris,Sun\n")
    answered = answer(path)
    assert {row for row, _, _ in rejects(answered)} == {2}
    assert answered.answered == 1


def test_a_line_that_is_no_json_is_rejected_alone(answer, tmp_path):
    path = tmp_path / "q.jsonl"
    path.write_text(json.dumps(GOOD) + "\n{oops\n[1]\n" + json.dumps(GOOD) + "\n")
    answered = answer(path)
    assert [row for row, _, _ in rejects(answered)] == [2, 3]
    assert answered.answered == 2


def test_parquet_in_and_out(answer, tmp_path):
    path = tmp_path / "q.parquet"
    rows = pd.DataFrame([GOOD, flat_example("publication")])  # numbers that a family lacks become NaN
    parquet.write_table(pa.Table.from_pandas(rows), path)
    answered = answer(path)
    assert parquet.read_table(answered.answers).column_names == list(PREDICTIONS.columns)
    assert answered.answered == 2


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_a_large_file_is_answered_on_spark_like_a_small_one_here(answer, spark, tmp_path, suffix):
    """Seven chunks, with bad rows, an id that comes back in another chunk, and another system."""
    sizes = np.arange(1, 66)
    rows = [GOOD | {"request_id": f"r{size}", "message_bytes": int(size)} for size in sizes]
    rows[20]["cpus"] = "four"
    rows[33]["request_id"] = "r3"
    rows[40]["os"] = "aix"
    rows[50]["colour"] = "red"
    path = write_csv(tmp_path / "q.csv", rows)
    here = answer(path, tmp_path / f"here{suffix}")
    there = answer(path, tmp_path / f"there{suffix}", chunk=10)
    assert read_back(here.answers) == read_back(there.answers)
    assert read_back(here.rejects) == read_back(there.rejects)
    assert (there.answered, there.excused, there.rejected) == (61, 1, 3)


def test_a_fitted_model_travels_to_spark(small_model, settings, spark, tmp_path):
    hub = flat_example("rules_hub")
    rows = [hub | {"request_id": f"r{n}", "queue_managers": n} for n in range(1, 9)]
    path = write_csv(tmp_path / "q.csv", rows)

    def who():
        return Asked(small_model, ("hybrid", "nearest"), (THROUGHPUT,))

    here = answer_file(path, tmp_path / "here.csv", settings, who)
    there = answer_file(path, tmp_path / "there.csv", settings, who, chunk=3)
    assert here.answered == there.answered == 16
    for one, other in zip(read_back(here.answers), read_back(there.answers), strict=True):
        assert one | {"value": 0} | _ends(other) == other | {"value": 0}
        assert one["value"] == pytest.approx(other["value"], rel=1e-9)


def _ends(row):
    """A batch of another size adds up in another order."""
    return {name: row[name] for name in ("lo50", "hi50", "lo90", "hi90")}


def test_staged_files_are_gone_when_the_answers_are_there(answer, spark, settings, tmp_path):
    answer(write_csv(tmp_path / "q.csv", [GOOD] * 30), chunk=10)
    assert list((settings.home / "staging").iterdir()) == []


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
        list(read_chunks(path))


def test_a_file_that_does_not_exist_is_refused(tmp_path):
    with pytest.raises(BadRequestFile, match="does not exist"):
        list(read_chunks(tmp_path / "nothing.csv"))


def test_rejects_of_an_earlier_try_do_not_stay(answer, tmp_path):
    path = write_csv(tmp_path / "q.csv", [GOOD | {"cpus": "four"}, GOOD])
    first = answer(path)
    assert first.rejects.exists()
    answer(write_csv(path, [GOOD]))
    assert not first.rejects.exists()
