"""Logs of MQ-CPH and PerfHarness. The texts follow the descriptions of their lines; no run printed them."""

from __future__ import annotations

import pytest

from twin.sources.documents import Refused
from twin.sources.files import files_in, kind_of, read_file
from twin.sources.harness.interpreting import interpret_harness
from twin.sources.harness.iteration_log import plain_number

SIDECAR = "os: linux\nmachine: box\ncpus: 4\nproduct: IBM MQ\nversion: 9.4\nmeasured_at: 2024-05-06\n"
CPH_COMMAND = "./cph -vo 3 -nt 16 -ms 2048 -rl 60 -id 1 -tc Requester -ss 10 -pp -jb QM1\n"
CPH_INTERVALS = (
    "rate=2461.00,threads=16\nid=1,rate=2470.00,threads=16,avg_latency(uSec)=405,max_latency(uSec)=900\n"
)
CPH_SUMMARY = "totalIterations=147960,totalSeconds=60.00,avgRate=2466.00\n"
CPH = CPH_COMMAND + CPH_INTERVALS + CPH_SUMMARY
JMS_COMMAND = "java JMSPerfHarness -tc jms.r11.Requestor -nt 10 -ms 512 -sc BasicStats\n"
BASIC = (
    "rate=16836.00,total messages=33672,Snapshot period=2,threads=10\n"
    "totalIterations=1302393,avgDuration=77.61,totalRate=16782.39\n"
)
ROLLING = "rateR=16648.00,threads=10\ntotalIterations=998880,avgDuration=60.00,maxrateR=16700.50\n"


@pytest.fixture
def read(tmp_path):
    def of(text, sidecar=SIDECAR, name="run.log"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        if sidecar is not None:
            path.with_name(f"{name}.yaml").write_text(sidecar)
        assert kind_of(path) in ("harness", None)
        return read_file(path)

    return of


def measured(document):
    return interpret_harness(document.figures)


@pytest.mark.parametrize(
    ("text", "metric", "value", "header", "line", "clients"),
    [
        (CPH, "throughput_msgs_per_s", 2466.0, "avgRate", 4, 16),
        (JMS_COMMAND + BASIC, "throughput_msgs_per_s", 16782.39, "totalRate", 3, 10),
        (JMS_COMMAND + ROLLING, "best_window_msgs_per_s", 16700.5, "maxrateR", 3, 10),
    ],
)
@pytest.mark.parametrize("name", ["run.log", "run.out", "run.txt"])
def test_a_run_gives_its_rate_with_its_estimator_and_line(
    read, text, metric, value, header, line, clients, name
):
    document = read(text, name=name)
    (one,) = measured(document)
    assert (one.metric, one.value, one.unit) == (metric, value, "msgs/s")
    assert (one.origin.column_header, one.origin.line) == (header, line)
    assert one.configuration.workload.clients == clients
    assert '"loop": "closed"' in one.row_keys
    # what else the summary says stays in bronze
    assert {figure.origin.column_header for figure in document.figures} > {header, "totalIterations"}


def test_the_command_line_says_persistence_size_and_pace(read):
    (one,) = measured(read(CPH.replace("-pp", "-pp -rt 20")))
    flat = one.configuration.flat()
    assert (flat["persistent"], flat["message_bytes"], flat["offered_rate_msgs_per_s"]) == (True, 2048, 320)
    assert '"loop": "closed, paced"' in one.row_keys
    (other,) = measured(read(CPH.replace("-pp ", "-pp false ")))
    assert other.configuration.flat()["persistent"] is False


def test_a_log_without_its_command_line_is_told_by_the_sidecar(read):
    told = "family: request_reply\nclients: 4\nmessage_bytes: 100\npersistent: false\n"
    (one,) = measured(read(CPH_INTERVALS + CPH_SUMMARY, SIDECAR + told))
    assert one.configuration.workload.clients == 4
    with pytest.raises(Refused, match="family"):
        read(CPH_INTERVALS + CPH_SUMMARY)


def test_runs_one_after_the_other_are_rows_of_their_own(read):
    document = read(CPH + CPH.replace("-nt 16", "-nt 32").replace("2466.00", "3001.50"))
    assert [(one.configuration.workload.clients, one.value) for one in measured(document)] == [
        (16, 2466.0), (32, 3001.5),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("printed", "plain"),
    [
        ("16648.00", "16648.00"),
        ("16,648.00", "16648.00"),
        ("16.648,00", "16648.00"),
        ("16 648,00", "16648.00"),
        ("16\u202f648,00", "16648.00"),
        ("1,302,393", "1302393"),
        ("0,75", "0.75"),
        ("7", "7"),
        ("fast", "fast"),
        ("1,23,456.0", "1,23,456.0"),
    ],
)
def test_a_number_is_read_in_every_locale(printed, plain):
    assert plain_number(printed) == plain


def test_a_log_with_decimal_commas_gives_the_same_figures(read):
    german = CPH.replace("2461.00", "2.461,00").replace("60.00", "60,00").replace("2466.00", "2.466,00")
    (one,) = measured(read(german))
    assert (one.value, one.origin.printed) == (2466.0, "2.466,00")


def test_a_truncated_run_costs_only_itself(read):
    document = read(CPH + CPH_COMMAND + CPH_INTERVALS)
    assert len(measured(document)) == 1
    assert "line 7: the log ends without a summary" in document.remark


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (CPH_COMMAND + CPH_INTERVALS, "line 3: the log ends without a summary: the run was cut short"),
        (CPH + CPH_SUMMARY, "2 summaries under one command line: the output of several processes"),
        (CPH.replace("147960", "0").replace("2466.00", "0.00"), "nothing was done: totalIterations is 0"),
        (CPH.replace("2466.00", "24totalIt"), "avgRate=24totalIt is no number"),
        (CPH.replace("Requester", "Sender"), "-tc Sender: only requesters are understood"),
        (CPH.replace("-nt 16 ", ""), "its command line has no -nt"),
        (CPH.replace("-ms 2048", "-ms two"), "column message_bytes"),
        (CPH.replace("-rl 60", "-rt soon"), "-rt soon is no rate"),
        (CPH.replace("-jb QM1", "-jb 'QM1"), "cannot be taken apart"),
        (JMS_COMMAND + "tps=5.00,avgResponse(micros)=9,threads=1\ntotalIterations=5,avgDuration=1.00\n",
         "its summary has none of totalRate, maxrateR"),
        (CPH.encode("utf-16"), "not UTF-8"),
        (CPH.encode() + b"\xff\xfe", "not UTF-8 text"),
        ("hello\n", "no harness format"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_refused_with_the_reason(read, text, reason):
    with pytest.raises(Refused, match=reason):
        read(text)


def test_the_sidecar_has_to_say_when_and_on_what_and_may_not_contradict(read):
    with pytest.raises(Refused, match="has no measured_at"):
        read(CPH, SIDECAR.replace("measured_at: 2024-05-06\n", ""))
    with pytest.raises(Refused, match=r"alone\.log\.yaml beside it has to name os"):
        read(CPH, None, "alone.log")
    with pytest.raises(Refused, match=r"clients: 16 on line 1, 8 in run\.log\.yaml"):
        read(CPH, SIDECAR + "clients: 8\n")


def test_a_folder_of_logs_and_reports_is_told_apart(tmp_path):
    for name, text in (("run.txt", CPH), ("report.txt", "words"), ("notes.log", "hello")):
        (tmp_path / name).write_text(text)
    assert {path.name: kind_of(path) for path in files_in([tmp_path])} == {
        "report.txt": "report", "run.txt": "harness",
    }  # fmt: skip
