"""Files of RabbitMQ PerfTest. They follow the descriptions of the tool's output; no run printed them."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from twin.core.metrics import METRICS
from twin.sources.documents import Refused
from twin.sources.harness import perftest_csv, perftest_json, perftest_log
from twin.sources.harness.recording import Lines

RECORDINGS = Path(__file__).parent / "recordings"
LOG, CSV, JSON = (module.FORMAT for module in (perftest_log, perftest_csv, perftest_json))
FORMATS = {"perftest-2.20.log": LOG, "perftest-old.log": LOG, "perftest.csv": CSV, "perftest.json": JSON}
INTERVAL = (
    "id: a, time {} s, sent: {} msg/s, received: {} msg/s, "
    "min/median/75th/95th/99th consumer latency: {} {}\n"
)
LATENCIES = ("min", "p50", "p75", "p95", "p99")
TOLD = {"family": "point_to_point"}


def read(form, text, name="run"):
    return form.read(Lines(name, text if isinstance(text, bytes) else text.encode()))


def recording(name):
    return read(FORMATS[name], (RECORDINGS / name).read_bytes(), name)


def columns(run):
    return run.samples.to_pydict()


def interval(at="1.000", sent="100", received="90", latencies="1/2/3/4/5", unit="ms"):
    return INTERVAL.format(at, sent, received, latencies, unit)


def figures(run):
    return [(one.line, one.header, one.printed, one.metric, one.value) for one in run.summary]


def command(line):
    (run,) = read(LOG, f"{line}\n{interval()}").runs
    return run


def test_every_figure_of_a_log_comes_back_with_its_line():
    result = recording("perftest-2.20.log")
    (run,) = result.runs
    assert result.unread_lines == 0
    assert run.line == 2
    assert columns(run) == {
        "line": [9, 10, 11, 12],
        "at_s": [1.0, 2.001, 3.0, 4.0],
        "interval_s": pytest.approx([1.0, 1.001, 0.999, 1.0]),
        "rate_msgs_per_s": [8530.0, 19977.0, 0.0, 20601.0],
        "sent_msgs_per_s": [18898.0, 20112.0, 0.27, 20540.0],
        "latency_min_ms": [2.417, 1.999, 0.0, 1.873],
        "latency_p50_ms": [23.401, 21.008, 0.0, 20.444],
        "latency_p75_ms": [36.422, 30.115, 0.0, 29.87],
        "latency_p95_ms": [46.233, 40.006, 0.0, 39.512],
        "latency_p99_ms": [47.4, 44.321, 0.0, 43.008],
        "latency_max_ms": [51.007, 48.123, 0.0, 47.777],
    }
    assert figures(run) == [
        (14, "sending rate avg", "14880", "average_sent_msgs_per_s", 14880.0),
        (15, "receiving rate avg", "12277", "average_msgs_per_s", 12277.0),
        (16, "consumer latency min", "1873", "latency_min_ms", 1.873),
        (16, "consumer latency median", "21333", "latency_p50_ms", 21.333),
        (16, "consumer latency 75th", "31001", "latency_p75_ms", 31.001),
        (16, "consumer latency 95th", "41999", "latency_p95_ms", 41.999),
        (16, "consumer latency 99th", "46100", "latency_p99_ms", 46.1),
        (16, "consumer latency max", "51007", "latency_max_ms", 51.007),
        (17, "confirm latency min", "790", None, 0.79),
        (17, "confirm latency median", "4044", None, 4.044),
        (17, "confirm latency 75th", "4944", None, 4.944),
        (17, "confirm latency 95th", "7020", None, 7.02),
        (17, "confirm latency 99th", "9050", None, 9.05),
        (17, "confirm latency max", "11870", None, 11.87),
    ]
    assert run.told == TOLD | {
        "producers": "2", "consumers": "1", "message_bytes": "1000", "persistent": "true", "window": "100",
        "prefetch": "200", "queues": "1",
    }  # fmt: skip
    assert (run.loop, run.requested_msgs_per_s, run.problem) == ("closed", None, None)


def test_old_lines_are_read_too():
    result = recording("perftest-old.log")
    sending, receiving, nameless = result.runs
    assert result.unread_lines == 0
    assert [run.line for run in result.runs] == [2, 8, 12]
    assert columns(sending) == {
        "line": [4, 5],
        "at_s": [1.349, 2.35],
        "interval_s": pytest.approx([1.349, 1.001]),
        "rate_msgs_per_s": [1.5, 501.0],
        "sent_msgs_per_s": [1.5, 501.0],
    }
    assert figures(sending) == [
        (6, "sending rate avg", "214", "average_msgs_per_s", 214.0),
        (7, "receiving rate avg", "0", None, 0.0),
    ]
    # a message is never shorter than its own number and time
    assert sending.told == TOLD | {
        "producers": "1", "consumers": "0", "message_bytes": "12", "persistent": "false",
    }  # fmt: skip
    assert (sending.loop, sending.requested_msgs_per_s) == ("paced", 500.0)
    assert columns(receiving) == {
        "line": [8, 9],
        "at_s": [4.1, 5.1],
        "interval_s": pytest.approx([4.1, 1.0]),
        "rate_msgs_per_s": [20884.0, 51371.0],
        "sent_msgs_per_s": [23959.0, 51274.0],
        "latency_min_ms": [0.21, 49.519],
        "latency_mean_ms": [65.998, 59.427],
        "latency_max_ms": [93.74, 94.14],
    }
    assert figures(receiving) == [
        (10, "sending rate avg", "37616", "average_sent_msgs_per_s", 37616.0),
        (11, "recving rate avg", "36127", "average_msgs_per_s", 36127.0),
    ]
    assert (receiving.told, receiving.loop) == (TOLD, "unknown")
    assert columns(nameless)["line"] == [12]
    assert [columns(nameless)[f"latency_{one}_ms"] for one in LATENCIES] == [[1], [2], [3], [5], [8]]
    assert [one.line for one in nameless.summary] == [13, 14]


def test_long_logs_are_read_like_short_ones(monkeypatch):
    texts = [(RECORDINGS / name).read_text() for name in ("perftest-2.20.log", "perftest-old.log")]
    numbered = [interval(unit="µs").replace("id: a", f"id: {name}") for name in ("1", "2", "1-2")]
    text = "".join([*texts, *numbered, interval("2.000", sent="0.3"), "odd\n"])
    short = read(LOG, text)
    for shapes in (1, 20):
        monkeypatch.setattr(perftest_log, "_FEW_LINES", 1)
        monkeypatch.setattr(perftest_log, "_MOST_SHAPES", shapes)
        long = read(LOG, text)
        assert [columns(run) for run in long.runs] == [columns(run) for run in short.runs]
        assert (long.unread_lines, len(long.runs)) == (1, 8)


@pytest.mark.parametrize("unit", ["µs", "μs", "us", "?s", "Âµs", "micro-s", "microseconds"])
def test_microseconds_are_known_by_all_their_names(unit):
    text = interval(latencies="1/20/300/4000/50000", unit=unit)
    text += f"id: a, consumer latency min/median/75th/95th/99th 1/20/300/4000/50000 {unit}\n"
    (run,) = read(LOG, text).runs
    values = [0.001, 0.02, 0.3, 4.0, 50.0]
    assert [columns(run)[f"latency_{one}_ms"] for one in LATENCIES] == [[value] for value in values]
    assert [one.value for one in run.summary] == values


def test_milliseconds_stay_as_they_are():
    (run,) = read(LOG, interval(latencies="24/234/364/462/474")).runs
    assert [columns(run)[f"latency_{one}_ms"] for one in LATENCIES] == [[24], [234], [364], [462], [474]]


def test_times_until_a_confirm_stand_where_nobody_receives():
    (run,) = read(
        LOG,
        "id: a, time 1.000 s, sent: 9 msg/s, confirmed: 8 msg/s, nacked: 0 msg/s,"
        " min/median/75th/95th/99th confirm latency: 1/2/3/4/5 ms\n"
        "id: a, sending rate avg: 9 msg/s\nid: a, receiving rate avg: 0 msg/s\n"
        "id: a, confirm latency min/median/75th/95th/99th 1/2/3/4/5 ms\n",
    ).runs
    assert columns(run)["latency_p50_ms"] == [2.0]
    assert [one.metric for one in run.summary] == [
        "average_msgs_per_s", None, *(f"latency_{one}_ms" for one in LATENCIES)
    ]  # fmt: skip


def test_received_nothing_is_not_sent_where_somebody_receives():
    text = interval(received="0") + "id: a, sending rate avg: 100 msg/s\nid: a, receiving rate avg: 0 msg/s\n"
    (run,) = read(LOG, text).runs
    assert (columns(run)["rate_msgs_per_s"], columns(run)["sent_msgs_per_s"]) == ([0.0], [100.0])
    assert [one.metric for one in run.summary] == ["average_sent_msgs_per_s", "average_msgs_per_s"]


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_line_ends_do_not_matter(end):
    text = end.join([interval().rstrip(), interval("2.000").rstrip()]) + end if end else interval().rstrip()
    result = read(LOG, text)
    assert result.unread_lines == 0
    assert columns(result.runs[0])["line"] == ([1, 2] if end else [1])


@pytest.mark.parametrize(
    "rest",
    [
        "id: a, time 3.000 s, sent: 100 msg/s, rece",
        "id: a, time 3.000 s",
        "id: a, time 3.000 s, sent: 100 msg/s",
        "id: a, time 3.000 s, sent: 100 msg/s, received: 90 msg/s",
        interval("3.000")[:-3],
    ],
)
def test_a_line_that_was_cut_off_is_not_taken(rest):
    result = read(LOG, interval() + interval("2.000") + rest)
    assert (columns(result.runs[0])["line"], result.unread_lines) == ([1, 2], 1)


def test_two_processes_are_two_runs():
    other = interval(sent="7").replace("id: a", "id: b")
    text = (
        "bin/perf-test --id a -x 3\nbin/perf-test --id b -x 4\n"
        + interval() + other + interval("2.000") + other.replace("1.000", "2.000")
        + "id: b, sending rate avg: 7 msg/s\nid: a, sending rate avg: 100 msg/s\n"
        "id: b, receiving rate avg: 90 msg/s\nid: a, receiving rate avg: 91 msg/s\n"
    )  # fmt: skip
    result = read(LOG, text)
    first, second = result.runs
    assert (columns(first)["line"], columns(second)["line"]) == ([3, 5], [4, 6])
    assert columns(second)["sent_msgs_per_s"] == [7.0, 7.0]
    assert [[one.line for one in run.summary] for run in result.runs] == [[8, 10], [7, 9]]
    assert [run.told["producers"] for run in result.runs] == ["3", "4"]
    assert [run.line for run in result.runs] == [1, 2]


def test_command_lines_that_nothing_tells_apart_are_not_believed():
    other = interval().replace("id: a", "id: b")
    result = read(LOG, f"perf-test -x 3 -y 1\nperf-test -x 4 -y 1\n{interval()}{other}")
    assert [(run.told, run.line) for run in result.runs] == [(TOLD, 3), (TOLD, 4)]
    # nor is one believed twice
    result = read(LOG, f"perf-test -x 3 -y 1\n{interval()}{other}")
    assert [run.told.get("producers") for run in result.runs] == ["3", None]


def test_what_follows_a_summary_is_another_run():
    one = (
        "perf-test -x {} -y 1\n"
        + interval()
        + "id: a, sending rate avg: {} msg/s\nid: a, receiving rate avg: 9 msg/s\n"
    )
    result = read(LOG, one.format(1, 11) + one.format(2, 22))
    assert [run.told["producers"] for run in result.runs] == ["1", "2"]
    assert [columns(run)["line"] for run in result.runs] == [[2], [6]]
    assert [[figure.line for figure in run.summary] for run in result.runs] == [[3, 4], [7, 8]]


@pytest.mark.parametrize(
    "garbage",
    [
        "java.io.IOException: Connection reset",
        # two processes wrote into one line
        "id: a, time 1.000 s, sent: 18id: b, time 1.000 s, sent: 9 msg/s",
        "id: a, time 2.000 s",
        interval(latencies="1/2/3").rstrip(),
        interval(unit="h").rstrip(),
        "16:14:10.638 [main] ERROR com.rabbitmq.perf.PerfTest - Main thread caught exception",
        "rate=2461.00,threads=3",
    ],
)
def test_garbage_is_counted_and_passed_over(garbage):
    result = read(LOG, f"{interval()}\n{garbage}\n{interval('2.000')}")
    assert (columns(result.runs[0])["line"], result.unread_lines) == ([1, 4], 1)
    assert len(result.runs) == 1


def test_decimals_may_stand_behind_a_comma():
    text = interval("1,000", sent="0,27", received="9,5") + "id: a, sending rate avg: 0,27 msg/s\n"
    (run,) = read(LOG, text).runs
    assert [columns(run)[one] for one in ("at_s", "sent_msgs_per_s", "rate_msgs_per_s")] == [
        [1],
        [0.27],
        [9.5],
    ]
    assert figures(run) == [(2, "sending rate avg", "0,27", "average_sent_msgs_per_s", 0.27)]


def test_a_run_may_have_no_summary_or_nothing_else():
    (run,) = read(LOG, interval()).runs
    assert run.summary == []
    (run,) = read(LOG, "id: a, sending rate avg: 9 msg/s\nid: a, receiving rate avg: 8 msg/s\n").runs
    assert (run.line, run.samples.num_rows, [one.value for one in run.summary]) == (1, 0, [9.0, 8.0])
    assert [one.metric for one in run.summary] == ["average_sent_msgs_per_s", "average_msgs_per_s"]


def test_a_clock_that_goes_back_is_kept_as_printed():
    (run,) = read(LOG, interval() + interval("3.000") + interval("2.500") + interval("2.500")).runs
    assert columns(run)["at_s"] == [1.0, 3.0, 2.5, 2.5]
    assert columns(run)["interval_s"] == [1.0, 2.0, None, 0.0]
    (run,) = read(LOG, interval("-1.000") + interval("0.000")).runs
    assert columns(run)["interval_s"] == [None, 1.0]


def test_rates_of_zero_are_kept():
    (run,) = read(LOG, interval(sent="0", received="0", latencies="0/0/0/0/0") * 2).runs
    assert columns(run)["rate_msgs_per_s"] == [0.0, 0.0]
    assert columns(run)["sent_msgs_per_s"] == [0.0, 0.0]
    assert columns(run)["latency_p99_ms"] == [0.0, 0.0]


@pytest.mark.parametrize("text", ["", "\n", "id: a, starting consumer #0\n", "perf-test -x 1\n"])
def test_a_log_without_a_run_is_refused(text):
    with pytest.raises(Refused, match=r"^run line 1: "):
        read(LOG, text)


@pytest.mark.parametrize(
    ("line", "told", "loop", "requested"),
    [
        (
            "runjava com.rabbitmq.perf.PerfTest -x 1 -y 2 -u q -s 1000 -c 100 -f persistent -q 200",
            {"producers": "1", "consumers": "2", "message_bytes": "1000", "window": "100", "prefetch": "200",
             "persistent": "true", "queues": "1"},
            "closed",
            None,
        ),
        (
            "$ bin/perf-test --producers=3 --consumers 1 --size 100 --flag mandatory,persistent --ptxsize 25",
            {"producers": "3", "consumers": "1", "message_bytes": "100", "persistent": "true",
             "messages_per_commit": "25", "queues": "1"},
            "closed",
            None,
        ),
        (
            "docker run -it --rm --name perf-test pivotalrabbitmq/perf-test:2.20 -x0 -y10 -p -u perf-test",
            {"producers": "0", "consumers": "10", "message_bytes": "12", "persistent": "false",
             "queues": "1"},
            "unknown",
            None,
        ),
        (
            "kubectl run perf-test --image=pivotalrabbitmq/perf-test -- --uri amqp://h --rate 2.5 -x 2 -X 3",
            {"producers": "6", "consumers": "1", "message_bytes": "12", "persistent": "false", "queues": "1"},
            "paced",
            15.0,
        ),
        (
            "java -jar perf-test-2.23.0.jar -qp 'q-%d' -qpf 1 -qpt 10 -y 10 -qq -P 5 | tee run.log",
            {"producers": "1", "consumers": "10", "message_bytes": "12", "persistent": "true",
             "queues": "10"},
            "paced",
            0.2,
        ),
        (
            "PerfTest -sq -vs 100:30 -vr 10:5 -u a,b",
            {"producers": "1", "consumers": "1", "persistent": "true", "prefetch": "200", "queues": "2"},
            "paced",
            None,
        ),
        (
            "docker run -it --rm \\\n  pivotalrabbitmq/perf-test \\\n  --producers 4 --json-body -s 9000",
            {"producers": "4", "consumers": "1", "persistent": "false", "queues": "1"},
            "unknown",
            None,
        ),
        (
            "bin/perf-test",
            {"producers": "1", "consumers": "1", "message_bytes": "12", "persistent": "false", "queues": "1"},
            "unknown",
            None,
        ),
    ],
)  # fmt: skip
def test_a_command_line_tells_the_configuration(line, told, loop, requested):
    run = command(line)
    assert run.told == TOLD | told
    assert (run.loop, run.requested_msgs_per_s, run.problem) == (loop, requested, None)


def test_a_command_line_may_make_a_run_unusable():
    assert "gets every message" in command("bin/perf-test -x 1 -y 2").problem
    run = command("bin/perf-test -x $PRODUCERS")
    assert (run.told, run.problem) == (TOLD, "its command line: --producers $PRODUCERS is no number")
    assert "could not convert" in command("bin/perf-test -r fast").problem


@pytest.mark.parametrize(
    "line", ["perf-test it's", "we ran bin/perf-test", "bin/perf-test \\", "PerfTest rocks"]
)
def test_prose_is_no_command_line(line):
    result = read(LOG, f"{line}\n{interval()}")
    assert (result.runs[0].told, result.unread_lines) == (TOLD, 1)


def test_every_figure_of_a_table_comes_back_with_its_line():
    result = recording("perftest.csv")
    both, sending = result.runs
    assert (result.unread_lines, both.line, sending.line) == (0, 3, 5)
    assert columns(both) == {
        "line": [3, 4, 6],
        "at_s": [1.0, 2.001, 3.0],
        "interval_s": pytest.approx([1.0, 1.001, 0.999]),
        "rate_msgs_per_s": [8530.0, 19977.0, 0.0],
        "sent_msgs_per_s": [18898.0, 20112.0, 0.27],
        "latency_min_ms": [2.417, 1.999, 0.0],
        "latency_p50_ms": [23.401, 21.008, 0.0],
        "latency_p75_ms": [36.422, 30.115, 0.0],
        "latency_p95_ms": [46.233, 40.006, 0.0],
        "latency_p99_ms": [47.4, 44.321, 0.0],
    }
    assert columns(sending) == {
        "line": [5, 7],
        "at_s": [1.0, 2.0],
        "interval_s": [1.0, 1.0],
        "rate_msgs_per_s": [501.0, 499.0],
        "sent_msgs_per_s": [501.0, 499.0],
        "latency_min_ms": [0.64, 0.65],
        "latency_p50_ms": [1.2, 1.21],
        "latency_p75_ms": [1.333, 1.34],
        "latency_p95_ms": [1.5, 1.512],
        "latency_p99_ms": [1.801, 1.79],
    }
    assert (both.told, both.loop, both.summary) == (TOLD, "unknown", ())


TABLE = "id,time (s),published (msg/s),received (msg/s),min latency (ms),max consumer latency (ms),extra\n"


def test_columns_of_a_table_may_be_missing_or_unknown():
    (run,) = read(CSV, TABLE + "a,1.000,10,9,1,7,?\n").runs
    assert columns(run) == {
        "line": [2], "at_s": [1.0], "interval_s": [1.0], "rate_msgs_per_s": [9.0], "sent_msgs_per_s": [10.0],
        "latency_min_ms": [1.0], "latency_max_ms": [7.0],
    }  # fmt: skip
    (run,) = read(CSV, "id,time (s),published (msg/s)\na,1.000,10\n").runs
    assert columns(run)["rate_msgs_per_s"] == [10.0]


@pytest.mark.parametrize(
    ("odd", "unread"),
    [
        ("a,2.000,10", 1),
        ("a,2.000,10,9,1,7,?,8", 1),
        ("a,later,10,9,1,7,?", 1),
        ("a,,10,9,1,7,?", 1),
        ("a,2.000,1O,9,1,7,?", 1),
        ('"a,2.000,10', 1),
        ("", 0),
        ("# a remark", 0),
        (TABLE.rstrip(), 0),
        ("a\r2,\r2.000", 1),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_an_odd_row_does_not_lose_the_others(odd, unread, end):
    rows = [TABLE.rstrip(), "a,1.000,10,9,1,7,?", odd, "a,3.000,30,27,1,7,?", ""]
    result = read(CSV, end.join(rows))
    (run,) = result.runs
    assert (columns(run)["line"], columns(run)["sent_msgs_per_s"]) == ([2, 4], [10.0, 30.0])
    assert result.unread_lines == unread


def test_a_row_that_was_cut_off_is_not_taken():
    result = read(CSV, TABLE + "a,1.000,10,9,1,7,?\na,2.000,1")
    assert (columns(result.runs[0])["line"], result.unread_lines) == ([2], 1)


def test_a_table_without_rows_that_can_be_read_is_refused():
    for rows in ("", "a,1,000,10,9,1,7,?\n"):
        with pytest.raises(Refused, match=r"^run line 1: no row"):
            read(CSV, TABLE + rows)
    with pytest.raises(Refused, match=r"^run line 1: no header"):
        read(CSV, "a,b\n1,2\n")


def test_a_table_keeps_clock_and_zeros_as_printed():
    rows = "a,2.000,0,0,0,0,?\na,1.000,0,0,0,0,?\n"
    (run,) = read(CSV, TABLE + rows).runs
    assert columns(run)["at_s"] == [2.0, 1.0]
    assert columns(run)["interval_s"] == [2.0, None]
    assert columns(run)["rate_msgs_per_s"] == [0.0, 0.0]


def test_every_figure_of_scenarios_comes_back_with_its_line():
    result = recording("perftest.json")
    simple, varied = result.runs
    # one has no samples
    assert result.unread_lines == 1
    assert (simple.line, varied.line) == (2, 47)
    assert columns(simple) == {
        "line": [8, 18, 26, 31],
        "at_s": [1.0, 2.001, 3.0, 4.0],
        "interval_s": pytest.approx([1.0, 1.001, 0.999, 1.0]),
        "rate_msgs_per_s": [9000.0, 19500.25, 0.0, 19599.5],
        "sent_msgs_per_s": [15000.0, 19700.0, 19600.0, 19680.0],
        "latency_min_ms": [0.147, 0.15, None, 0.149],
        "latency_mean_ms": [3.511, 2.222, None, 2.104],
        "latency_max_ms": [9.871, 8.001, None, 7.999],
    }
    assert figures(simple) == [
        (3, "send-bytes-rate", "19680000.0", None, 19680000.0),
        (4, "recv-msg-rate", "19599.5", "average_msgs_per_s", 19599.5),
        (5, "avg-latency", "2104", "latency_mean_ms", 2.104),
        (6, "send-msg-rate", "19680.0", "average_sent_msgs_per_s", 19680.0),
        (40, "recv-bytes-rate", "19599500.0", None, 19599500.0),
    ]
    assert (simple.told, simple.problem) == (TOLD, None)
    assert varied.told == TOLD | {"message_bytes": "1000"}
    assert columns(varied)["rate_msgs_per_s"] == [31.5]
    assert figures(varied) == [
        (48, "send-msg-rate", "31.5", "average_msgs_per_s", 31.5),
        (49, "recv-msg-rate", "0.0", None, 0.0),
    ]


def scenario(samples, more=""):
    return f'{{"one": {{{more}"samples": [{samples}]}}}}'


def test_numbers_that_are_none_are_left_out():
    samples = '{"elapsed": 1000, "recv-msg-rate": null}, {"recv-msg-rate": 5, "send-msg-rate": NaN}'
    (run,) = read(JSON, scenario(samples)).runs
    assert columns(run)["rate_msgs_per_s"] == [None, 5.0]
    assert "sent_msgs_per_s" not in columns(run)


def test_a_clock_that_stands_still_makes_a_scenario_unusable():
    samples = ", ".join(['{"elapsed": 30000000000, "recv-msg-rate": 5}'] * 3)
    (run,) = read(JSON, scenario(samples)).runs
    assert "stands still" in run.problem
    assert columns(run)["interval_s"][1:] == [0.0, 0.0]


def test_a_summary_in_another_unit_is_kept_but_means_nothing():
    samples = ", ".join(f'{{"elapsed": {at}000, "recv-msg-rate": 5000}}' for at in range(1, 6))
    (run,) = read(JSON, scenario(samples, '"recv-msg-rate": 0.005, ')).runs
    assert figures(run) == [(1, "recv-msg-rate", "0.005", None, 0.005)]


@pytest.mark.parametrize("cut", [40, 600, -3])
def test_json_that_was_cut_off_is_refused(cut):
    whole = (RECORDINGS / "perftest.json").read_text()
    line = whole[:cut].count("\n") + 1
    with pytest.raises(Refused, match=f"^run line {line}: no JSON, "):
        read(JSON, whole[:cut])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 100_000, "nested too deep"),
        ("[1]", "no JSON object"),
        ("{}", "no samples"),
        ('{"a": 1}', "no samples"),
        ('{\n"a": {"samples": []}}', "line 2: no samples"),
    ],
)
def test_json_without_samples_is_refused(text, message):
    with pytest.raises(Refused, match=message):
        read(JSON, text)


def test_json_that_is_too_large_is_refused(monkeypatch):
    monkeypatch.setattr("twin.sources.harness.json_places.MOST_BYTES", 1)
    with pytest.raises(Refused, match="of JSON are read"):
        read(JSON, "{}")


OTHERS = (
    "# Persistence,Msg Size,Threads,Rate (RT/s)\n1,2048,1,1150.56",
    "rate=2461.00,threads=3\ntotalIterations=1032,totalSeconds=305.09,avgRate=3.38",
    "family,message_bytes,persistent\nrequest_reply,1024,true",
    '{"family": "request_reply", "message_bytes": 1024}',
    '{"record": "run", "configuration": {}}',
    '{\n  "workload" : "x",\n  "publishRate" : [ 1.0 ]',
    "id,time,value\n1,2,3",
    "",
)


@pytest.mark.parametrize("form", [LOG, CSV, JSON], ids=lambda form: form.name)
def test_a_file_is_recognised_by_its_first_lines(form):
    for name, own in FORMATS.items():
        text = (RECORDINGS / name).read_text()
        for piece in (text, text[:900]):
            assert form.recognises(piece.split("\n")[:50]) == (form is own), name
        assert Path(name).suffix in own.suffixes
    assert not any(form.recognises(text.split("\n")) for text in OTHERS)
    assert not form.recognises([])


def test_a_log_is_recognised_before_its_first_interval():
    assert LOG.recognises([f"id: test-1, starting consumer #{at}" for at in range(50)])


def test_metrics_are_known_and_columns_have_types():
    for name in FORMATS:
        for run in recording(name).runs:
            assert {one.metric for one in run.summary} - {None} <= {*METRICS}
            types = {field.name: str(field.type) for field in run.samples.schema}
            assert types.pop("line") == "int64"
            assert {*types.values()} == {"double"}
            assert all(one.value is None or math.isfinite(one.value) for one in run.summary)
