"""Logs of MQ-CPH and PerfHarness. The texts follow the descriptions of their lines; no run printed them."""

from __future__ import annotations

import json

import pytest

from twin.sources.documents import Refused
from twin.sources.files import files_in, kind_of, read_file
from twin.sources.harness.iteration_log import plain_number
from twin.sources.harness.run_measuring import measurements_of
from twin.sources.harness.runs import read_runs

SIDECAR = "os: linux\nmachine: box\ncpus: 4\nproduct: IBM MQ\nversion: 9.4\nmeasured_at: 2024-05-06\n"
CPH_COMMAND = "./cph -vo 3 -nt 16 -ms 2048 -rl 60 -id 1 -tc Requester -ss 10 -pp -jb QM1\n"
CPH_INTERVALS = (
    "rate=2461.00,threads=16\n"
    "id=1,rate=2470.00,threads=16,avg_latency(uSec)=405,max_latency(uSec)=900,min_latency(uSec)=107\n"
)
CPH_SUMMARY = "totalIterations=147960,totalSeconds=60.00,avgRate=2466.00\n"
CPH = CPH_COMMAND + CPH_INTERVALS + CPH_SUMMARY
JMS_COMMAND = "java JMSPerfHarness -tc jms.r11.Requestor -nt 10 -ms 512 -sc BasicStats\n"
BASIC = (
    "rate=16836.00,total messages=33672,Snapshot period=2,threads=10\n"
    "totalIterations=1302393,avgDuration=77.61,totalRate=16782.39\n"
)
ROLLING = "rateR=16648.00,threads=10\ntotalIterations=998880,avgDuration=60.00,maxrateR=16700.50\n"
RESPONSE = "tps=5000.00,avgResponse(micros)=198,threads=10\ntotalIterations=5,avgDuration=1.00\n"


@pytest.fixture
def read(tmp_path):
    def of(text, sidecar=SIDECAR, name="run.log"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        if sidecar is not None:
            path.with_name(f"{name}.yaml").write_text(sidecar)
        assert kind_of(path) in ("runs", None)
        return read_runs(path)

    return of


def rows(read_file):
    return read_file.samples.to_pylist()


def measured(read_file):
    nothing = dict.fromkeys(("cpu_busy_pct", "rate_msgs_per_s", "steady_first_line"))
    return [one for run in read_file.runs for one in measurements_of(nothing | run)]


@pytest.mark.parametrize(
    ("text", "metric", "value", "header", "line", "clients"),
    [
        (CPH, "average_msgs_per_s", 2466.0, "avgRate", 4, 16),
        (CPH, "run_s", 60.0, "totalSeconds", 4, 16),
        (CPH, "messages", 147960.0, "totalIterations", 4, 16),
        (JMS_COMMAND + BASIC, "thread_sum_msgs_per_s", 16782.39, "totalRate", 3, 10),
        (JMS_COMMAND + ROLLING, "best_window_msgs_per_s", 16700.5, "maxrateR", 3, 10),
    ],
)
@pytest.mark.parametrize("name", ["run.log", "run.out", "run.txt"])
def test_figures_of_a_summary_come_back_with_estimator_unit_and_line(
    read, text, metric, value, header, line, clients, name
):
    (one,) = [one for one in measured(read(text, name=name)) if one.metric == metric]
    assert one.value == value
    assert one.unit == {"run_s": "s", "messages": ""}.get(metric, "msgs/s")
    assert (one.origin.column_header, one.origin.line, one.origin.table_label) == (header, line, name)
    assert one.configuration.workload.clients == clients
    assert '"loop": "closed"' in one.row_keys


def test_every_interval_comes_back_with_its_line(read):
    first, second = rows(read(CPH))
    assert (first["line"], first["rate_msgs_per_s"], first["threads"], first["at_s"]) == (2, 2461.0, 16, 10.0)
    assert (second["line"], second["rate_msgs_per_s"], second["at_s"]) == (3, 2470.0, 20.0)
    latencies = [second[f"latency_{name}_ms"] for name in ("mean", "max", "min")]
    assert latencies == [0.405, 0.9, 0.107]
    assert first["latency_mean_ms"] is None
    (basic,) = rows(read(JMS_COMMAND + BASIC))
    assert (basic["messages"], basic["interval_s"], basic["threads"]) == (33672.0, 2.0, 10)
    (rolling,) = rows(read(JMS_COMMAND + ROLLING))
    assert (rolling["line"], rolling["rate_msgs_per_s"]) == (2, 16648.0)
    (response,) = rows(read(JMS_COMMAND + RESPONSE))
    assert (response["rate_msgs_per_s"], response["latency_mean_ms"]) == (5000.0, 0.198)


def test_the_command_line_says_persistence_size_and_pace(read):
    (run,) = read(CPH.replace("-pp", "-pp -rt 20")).runs
    assert (run["persistent"], run["message_bytes"], run["offered_rate_msgs_per_s"]) == (True, 2048, 320)
    assert (run["loop"], run["requested_msgs_per_s"]) == ("paced", 320)
    (other,) = read(CPH.replace("-pp ", "-pp false ")).runs
    assert (other["persistent"], other["loop"]) == (False, "closed")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("-tc Sender", {"producers": 16, "consumers": 0, "window": 1, "messages_per_commit": 1}),
        ("-tc Sender -tx -cc 25", {"producers": 16, "window": 25, "messages_per_commit": 25}),
        ("-tc jms.r11.Receiver", {"producers": 0, "consumers": 16, "window": None}),
        ("-tc jms.r11.PutGet", {"producers": 16, "consumers": 16, "window": 1}),
    ],
)
def test_senders_and_receivers_are_a_family_of_their_own(read, options, expected):
    (run,) = read(CPH.replace("-tc Requester", options)).runs
    assert run["family"] == "point_to_point"
    assert {name: run[name] for name in expected} == expected


def test_a_log_without_its_command_line_is_told_by_the_sidecar(read):
    told = "family: request_reply\nclients: 4\nmessage_bytes: 100\npersistent: false\n"
    (run,) = read(CPH_INTERVALS + CPH_SUMMARY, SIDECAR + told).runs
    assert (run["clients"], run["loop"]) == (4, "unknown")
    with pytest.raises(Refused, match="family"):
        read(CPH_INTERVALS + CPH_SUMMARY)


def test_runs_one_after_the_other_keep_their_own_intervals(read):
    both = read(CPH + CPH.replace("-nt 16", "-nt 32").replace("2466.00", "3001.50"))
    assert [(run["run"], run["line"], run["clients"], run["printed_msgs_per_s"]) for run in both.runs] == [
        (1, 4, 16, 2466.0), (2, 8, 32, 3001.5),
    ]  # fmt: skip
    assert [(row["run"], row["line"]) for row in rows(both)] == [(1, 2), (1, 3), (2, 6), (2, 7)]


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
    both = read(german)
    assert [row["rate_msgs_per_s"] for row in rows(both)] == [2461.0, 2470.0]
    (one,) = [one for one in measured(both) if one.metric == "average_msgs_per_s"]
    assert (one.value, one.origin.printed) == (2466.0, "2.466,00")


def test_a_truncated_log_keeps_what_was_printed(read):
    cut = CPH_COMMAND + "rate=2461.00,threads=16\n" * 8 + "rate=24"
    (run,) = read(cut).runs
    assert (run["samples"], run["unread_lines"], run["printed_msgs_per_s"]) == (8, 1, None)
    assert (run["rate_msgs_per_s"], run["estimator"], run["verdict"]) == (2461.0, "steady_mean", "stable")


def test_a_run_that_is_too_short_is_known_by_its_summary_or_not_at_all(read):
    (run,) = read(CPH).runs
    assert (run["verdict"], run["estimator"], run["rate_msgs_per_s"]) == ("summary_only", "average", 2466.0)
    assert (run["line"], run["printed"]) == (4, "2466.00")
    (cut,) = read(CPH_COMMAND + CPH_INTERVALS).runs
    assert (cut["verdict"], cut.get("rate_msgs_per_s")) == ("too_short", None)
    # the best window is no average: it stands for nothing but itself
    (best,) = read(JMS_COMMAND + ROLLING).runs
    assert best["verdict"] == "too_short"


def test_one_bad_line_costs_only_itself(read):
    (run,) = read(CPH.replace("id=1,", "rate=24rate=2470.00,threads=16threads=16\nJVM warning\n")).runs
    assert (run["samples"], run["unread_lines"]) == (2, 2)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (CPH + CPH_SUMMARY, "the output of several processes under one command line"),
        (
            CPH.replace("rate=2461", "id=2,rate=2461"),
            "the output of several processes under one command line",
        ),
        (CPH.replace("2466.00", "24totalIt"), "line 4: avgRate=24totalIt is no number"),
        (CPH.replace("Requester", "Subscriber"), "-tc Subscriber: only requestor, requester, sender"),
        (CPH.replace("-nt 16 ", ""), "its command line has no -nt"),
        (CPH.replace("-ms 2048", "-ms two"), "message_bytes"),
        (CPH.replace("-rl 60", "-rt soon"), "one of -rt, -ss, -nt is no number"),
        (CPH.replace("-jb QM1", "-jb 'QM1"), "cannot be taken apart"),
        (CPH.encode("utf-16"), "not UTF-8"),
        (CPH.encode() + b"\xff\xfe", r"not UTF-8 text \(line 5, byte"),
        (CPH.encode() + b"\0", "binary"),
        (CPH_COMMAND, "no harness"),
        ("hello\n", "no harness"),
        ("", "no harness"),
    ],
)
def test_what_cannot_be_used_is_refused_with_the_reason(read, text, reason):
    with pytest.raises(Refused, match=reason):
        read(text)


def test_a_bad_run_among_good_ones_is_kept_with_the_reason(read):
    good, bad = read(CPH + CPH.replace("Requester", "Subscriber")).runs
    assert (good["problem"], bad["configuration_id"]) == (None, None)
    assert "Subscriber" in bad["problem"]
    assert bad["samples"] == 2


def test_a_run_that_did_nothing_is_idle(read):
    nothing = (
        CPH_COMMAND + "rate=0.00,threads=16\n" * 9 + "totalIterations=0,totalSeconds=90.00,avgRate=0.00\n"
    )
    (run,) = read(nothing).runs
    assert (run["verdict"], run.get("rate_msgs_per_s")) == ("idle", None)
    assert "throughput_msgs_per_s" not in {one.metric for one in measured(read(nothing))}


def test_the_sidecar_has_to_say_when_and_on_what_and_may_not_contradict(read):
    with pytest.raises(Refused, match="nothing says when it was measured"):
        read(CPH, SIDECAR.replace("measured_at: 2024-05-06\n", ""))
    with pytest.raises(Refused, match="os: missing"):
        read(CPH, None, "alone.log")
    with pytest.raises(Refused, match=r"clients: 16 on line 1, 8 in run\.log\.yaml"):
        read(CPH, SIDECAR + "clients: 8\n")


def test_a_folder_describes_all_its_files_and_a_file_itself_better(read, tmp_path):
    (tmp_path / "archive.yaml").write_text(SIDECAR + "source: lab\n")
    (run,) = read(CPH, "cpus: 8\n").runs
    assert (run["cpus"], run["machine"], run["source_id"]) == (8, "box", "harness-lab")
    assert [path.name for path in files_in([tmp_path])] == ["run.log"]


def test_files_nobody_named_belong_together_by_product_and_machine(read):
    (run,) = read(CPH).runs
    assert run["source_id"] == "harness-ibm-mq-box"
    assert run["document_id"].startswith("run-")
    assert json.loads(run["told"])["clients"] == "16"


def test_a_folder_of_logs_and_reports_is_told_apart(tmp_path):
    for name, text in (("run.txt", CPH), ("report.txt", "words"), ("notes.log", "hello")):
        (tmp_path / name).write_text(text)
    assert {path.name: kind_of(path) for path in files_in([tmp_path])} == {
        "report.txt": "report", "run.txt": "runs",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "reason"),
    [("notes.log", "no harness"), ("runs.zip", "is packed: unpack it"), ("a.tar.gz", "packed")],
)
def test_any_other_file_is_refused_with_the_reason(tmp_path, name, reason):
    (tmp_path / name).write_bytes(b"PK\x03\x04 hello")
    with pytest.raises(Refused, match=reason):
        read_file(tmp_path / name)


def test_a_link_in_a_folder_is_not_followed(tmp_path):
    outside = tmp_path / "outside"
    archive = tmp_path / "archive"
    for folder in (outside, archive):
        folder.mkdir()
    (outside / "run.log").write_text(CPH)
    (archive / "link.log").symlink_to(outside / "run.log")
    (archive / "folder").symlink_to(outside)
    (archive / "run.log").write_text(CPH)
    assert files_in([archive]) == [archive / "run.log"]
