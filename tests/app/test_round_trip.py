"""Every harness format's sample file, through Spark into silver, and out again by `twin export`."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from twin.app.cli import app
from twin.core.metrics import METRICS
from twin.core.runs import Sample
from twin.sources.harness.iteration_log import plain_number
from twin.sources.harness.registry import RUN_FORMATS

pytestmark = pytest.mark.long

RECORDINGS = Path(__file__).parents[1] / "sources" / "recordings"
# what a tool does not say of itself
TOLD = "product: RabbitMQ\nversion: 4.0\nproducers: 1\nconsumers: 1\nmessage_bytes: 1000\npersistent: true\n"
DESCRIBED = {
    "perftest.csv": TOLD + "family: point_to_point\n",
    "perftest.json": TOLD + "family: point_to_point\n",
    "perftest-old.log": "product: RabbitMQ\nversion: 3.0\n",
    "perftest-2.20.log": "product: RabbitMQ\nversion: 4.0\n",
    "openmessaging.json": "product: Kafka\nversion: 4.1\npersistent: true\n",
}
RESULTS = "# Fri Jun 3 20:39:04 UTC 2022\n# Persistence,Msg Size,Threads,Rate (RT/s),QM CPU\n"
RESULTS += "1,2048,1,1150.56,2.70\n"
MEASURED = (
    "family,os,machine,cpus,product,version,clients,message_bytes,persistent,metric,value,unit,published_at\n"
    "request_reply,linux,box,4,Other MQ,1.0,8,512,false,throughput_msgs_per_s,4711.5,msgs/s,2025-01-02\n"
)
NUMBER = re.compile(r"\d[\d.,\u202f]*\d|\d")
FIGURES = [name for name in Sample.model_fields if name.endswith("_msgs_per_s")] + [
    "threads", "messages", "backlog_msgs", "cpu_busy_pct", "latency_min_ms", "latency_mean_ms",
    "latency_p50_ms", "latency_p75_ms", "latency_p95_ms", "latency_p99_ms", "latency_max_ms",
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recordings")
    for file in RECORDINGS.iterdir():
        if file.suffix != ".md":
            shutil.copy(file, folder)
    for name, told in DESCRIBED.items():
        (folder / f"{name}.yaml").write_text(told)
    (folder / "results.csv").write_text(RESULTS)
    (folder / "measured.csv").write_text(MEASURED)
    return folder


@pytest.fixture(scope="module")
def command(folder, tmp_path_factory, spark):
    home = tmp_path_factory.mktemp("home")

    def run(*arguments):
        return CliRunner().invoke(app, [str(one) for one in arguments], env={"TWIN_HOME": str(home)})

    done = run("ingest", folder, "--json")
    assert done.exit_code == 0, done.output
    run.told = json.loads(done.stdout)
    return run


def exported(command, table, where):
    done = command("export", table, "--where", where)
    assert done.exit_code == 0, done.output
    return list(csv.DictReader(io.StringIO(done.stdout)))


def numbers_on(folder, name, line):
    text = (folder / name).read_text()
    # in JSON an interval has a line for each of its figures
    if not name.endswith(".json"):
        text = text.split("\n")[int(line) - 1]
    if name.endswith(".csv"):
        text = text.replace(",", " ; ")
    return {
        float(number)
        for one in NUMBER.findall(text)
        if re.fullmatch(r"\d+(\.\d+)?", number := plain_number(one))
    }


def test_all_formats_come_in_at_once(command):
    tools = {row["tool"] for row in exported(command, "runs", "true")}
    assert tools == {one.name for one in RUN_FORMATS}
    assert command.told["refused"] == {}


def test_every_figure_of_a_summary_comes_out_as_printed_with_unit_and_origin(command, folder):
    rows = exported(
        command, "measurements", "source_kind = 'log' AND derivation IS NULL AND column_index > 1"
    )
    assert {row["table_label"].split(".")[0] for row in rows} >= {
        "mqcph", "perfharness-basic", "perfharness-rolling", "perfharness-response", "perftest-2",
        "perftest-old", "perftest", "openmessaging", "twin",
    }  # fmt: skip
    for row in rows:
        line = (folder / row["table_label"]).read_text().split("\n")[int(row["line"]) - 1]
        assert row["printed"] in line
        assert row["unit"] == (METRICS[row["metric"]].unit or "")
        printed = float(plain_number(row["printed"]))
        # micro- to milliseconds at most
        assert float(row["value"]) in (printed, printed / 1000)


def test_every_interval_comes_out_as_printed_with_its_line(command, folder):
    names = {row["document_id"]: row["document_name"] for row in exported(command, "runs", "true")}
    samples = exported(command, "samples", "true")
    assert len(samples) == command.told["archive"]["samples"] > 70
    for row in samples:
        there = numbers_on(folder, names[row["document_id"]], row["line"])
        figures = [float(row[name]) for name in FIGURES if row[name]]
        assert figures
        for figure in figures:
            assert any(abs(figure * scale - one) <= 1e-9 * one for one in there for scale in (1, 1000)), row


def test_a_rate_that_was_not_printed_says_of_which_lines_it_is_the_mean(command, folder):
    rows = exported(command, "measurements", "derivation_rule = 'steady_mean' AND table_label = 'mqcph.log'")
    assert len(rows) == 2
    for row in rows:
        first, last = map(int, re.findall(r"\d+", row["derivation"]))
        lines = (folder / "mqcph.log").read_text().split("\n")[first - 1 : last]
        rates = [float(re.match(r"rate=([\d.]+)", line)[1]) for line in lines]
        assert float(row["value"]) == pytest.approx(sum(rates) / len(rates), rel=1e-12)


def test_tables_come_out_as_they_were(command):
    rows = exported(command, "measurements", "source_kind = 'table'")
    assert sorted((row["metric"], row["printed"], float(row["value"]), row["line"]) for row in rows) == [
        ("cpu_busy_pct", "2.70", 2.7, "3"),
        ("throughput_msgs_per_s", "1150.56", 1150.56, "3"),
        ("throughput_msgs_per_s", "4711.5", 4711.5, "2"),
    ]


def test_the_same_runs_again_change_nothing(command, folder):
    tables = ("results.csv", "measured.csv")
    files = [file for file in folder.iterdir() if file.suffix != ".yaml" and file.name not in tables]
    done = command("ingest", *files, "--json")
    told = json.loads(done.stdout)
    assert (done.exit_code, told["archive"]["runs"], len(told["archive"]["known"])) == (0, 0, 10)
