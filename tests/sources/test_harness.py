"""Result files of load harnesses: what is read, what it means, and what is refused."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twin.core.tables import MEASUREMENTS
from twin.sources import document as document_module
from twin.sources.declarations import reports
from twin.sources.documents import Refused
from twin.sources.harness.interpreting import interpret_harness
from twin.sources.harness.reading import read_harness

SAMPLE = Path(document_module.__file__).parents[1] / "app" / "samples" / "cphtestp" / "results.csv"
HEADER = "# Persistence, Msg Size, Threads, Rate (RT/s), Client CPU, QM CPU"
DATED = f"# Fri Jun 3 20:39:04 UTC 2022\n{HEADER}\n"
SIDECAR = "os: linux\nmachine: box\ncpus: 4\nproduct: IBM MQ\nversion: 9.10\n"
COLUMNS = "metric,value,family,published_at,os,machine,cpus,product,version,clients,message_bytes,persistent"
ROW = "throughput_msgs_per_s,1200.5,request_reply,2024-05-06,linux,box,4,IBM MQ,9.4,8,2048,true"


@pytest.fixture
def written(tmp_path):
    def write(text, sidecar=None, name="results.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        if sidecar is not None:
            path.with_name(f"{name}.yaml").write_text(sidecar)
        return path

    return write


@pytest.fixture
def read(written):
    return lambda *arguments, **named: read_harness(written(*arguments, **named))


def test_the_shipped_sample_gives_a_rate_for_each_thread_count():
    document = read_harness(SAMPLE)
    assert (document.card.source_id, document.remark) == ("harness-cphtestp-openshift", None)
    assert document.card.document_published_at == date(2022, 6, 3)
    measured = interpret_harness(document.figures)
    assert [(m.configuration.workload.clients, m.value) for m in measured] == [
        (1, 124.97), (2, 195.83), (4, 253.77), (8, 256.16), (16, 409.1), (32, 621.02), (64, 655.88),
        (100, 681.24),
    ]  # fmt: skip
    assert {m.exam_group for m in measured} == {"results"}
    # the processors that QM CPU is a share of are not printed
    assert {m.metric for m in measured} == {"throughput_msgs_per_s"}


def test_a_figure_says_where_it_stands_and_carries_all_that_its_meaning_needs(read):
    rate, client, queue_manager = read(f"{DATED}1,2048,4,0253.70,13.76,8.27\n", SIDECAR).figures
    assert (rate.origin.line, rate.origin.column_header, rate.origin.column_index) == (3, "Rate (RT/s)", 3)
    assert (rate.origin.printed, rate.origin.table_label) == ("0253.70", "results")
    assert rate.figure_id == f"{rate.origin.source_id}:3:0"
    assert json.loads(rate.row_keys) == {
        "os": "linux", "machine": "box", "cpus": "4", "product": "IBM MQ", "version": "9.10",
        "Persistence": "1", "Msg Size": "2048", "Threads": "4", "published_at": "2022-06-03",
    }  # fmt: skip
    declared = [one.declared_as for one in (rate, client, queue_manager)]
    assert declared == ["cphtestp/Rate (RT/s)", None, "cphtestp/QM CPU"]


def test_round_trips_and_processors_of_the_queue_manager_are_understood(read):
    rate, busy = interpret_harness(read(f"{DATED}1,2048,4,253.7,13.76,8.27\n", SIDECAR).figures)
    assert (rate.metric, rate.value, rate.unit) == ("throughput_msgs_per_s", 253.7, "msgs/s")
    assert (busy.metric, busy.value) == ("cpu_busy_pct", 8.27)
    assert rate.configuration_id == busy.configuration_id
    assert rate.configuration.software.version == "9.10"
    assert rate.configuration.workload.persistent is True
    assert (rate.fact_kind, rate.published_at) == ("measurement", date(2022, 6, 3))


@pytest.mark.parametrize(
    "printed",
    [
        "# Fri Jun 3 20:39:04 UTC 2022",
        "# Fri Jun  3 20:39:04 UTC 2022",
        "# Fri  3 Jun 20:39:04 BST 2022",
        "# Fri 03 Jun 2022 08:39:04 PM UTC",
        "# Fri, 03 Jun 2022 20:39:04 +0000",
        "Fri Jun 3 20:39:04 UTC 2022",
    ],
)
def test_the_date_of_a_run_as_the_system_prints_it(read, printed):
    document = read(f"{printed}\n{HEADER}\n1,2048,4,253.7,13.76,8.27\n", SIDECAR)
    assert document.card.document_published_at == date(2022, 6, 3)


def test_without_a_comment_the_sidecar_dates_the_run(read):
    document = read(f"{HEADER}\n1,2048,4,253.7,13.76,8.27\n", SIDECAR + "measured_at: 2021-02-03\n")
    assert document.card.document_published_at == date(2021, 2, 3)


def test_a_second_run_in_a_file_has_its_own_date_and_columns(read):
    later = "# Sat Jun 4 10:00:00 UTC 2022\n# Persistence, Msg Size, Threads, Rate (RT/s)\n0,512,1,99.5\n"
    measured = interpret_harness(read(f"{DATED}1,2048,4,253.7,13.76,8.27\n{later}", SIDECAR).figures)
    assert [(m.published_at.day, m.metric, m.value) for m in measured][-1] == (
        4, "throughput_msgs_per_s", 99.5,
    )  # fmt: skip
    assert measured[-1].configuration.workload.persistent is False


def test_columns_may_be_more_and_cells_may_be_empty(read):
    text = f"{DATED.strip()}, Temperature\n1,2048,4,253.7,13.76,,21.5\n0,2048,4,1253.7,,,\n"
    document = read(text, SIDECAR)
    assert document.remark is None
    assert [figure.origin.printed for figure in document.figures] == ["253.7", "13.76", "21.5", "1253.7"]
    assert document.figures[2].declared_as is None


def test_a_cell_that_is_no_number_stays_as_printed_for_the_laws_to_accuse(read):
    document = read(f"{DATED}1,2048,4,fast,13.76,8.27\n", SIDECAR)
    rate = interpret_harness(document.figures)[0]
    assert (rate.origin.printed, rate.value, rate.qualifier) == ("fast", None, "text")
    assert document.remark is None


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("1,2048,8", "line 4: 3 cells under 6 columns"),
        ("1,2048,8,1,253.7,13.76,8.27", "line 4: 7 cells under 6 columns"),
        ("1,2048,many,253.7,13.76,8.27", "line 4: column Threads: 'many'"),
        ("2,2048,8,253.7,13.76,8.27", "line 4: column Persistence: '2'"),
        ("1,2048,0,253.7,13.76,8.27", "line 4: column Threads: '0'"),
        ("1,2048,8,,13.76,8.27", "line 4: column Rate (RT/s) is empty"),
    ],
)
def test_one_bad_row_does_not_lose_the_file(read, row, reason):
    document = read(f"{DATED}1,2048,4,253.7,13.76,8.27\n{row}\n", SIDECAR)
    kept = [figure for figure in document.figures if figure.origin.line == 4]
    assert [figure.origin.printed for figure in kept][-1] == row.split(",")[-1]
    assert {figure.declared_as for figure in kept} == {None}
    assert len(interpret_harness(document.figures)) == 2
    assert document.remark.startswith("1 of 2 rows were not understood")
    assert reason in document.remark


def test_many_bad_rows_are_counted_and_the_first_are_told(read):
    document = read(f"{DATED}1,2048,4,253.7,13.76,8.27\n" + "1,2048\n" * 9, SIDECAR)
    assert document.remark.startswith("9 of 10 rows")
    assert document.remark.endswith("line 8: 2 cells under 6 columns; and 4 more")


GOOD = f"{DATED}1,2048,4,253.7,13.76,8.27\n"


@pytest.mark.parametrize(
    ("text", "sidecar", "reason"),
    [
        (GOOD, None, r"results.csv.yaml beside it has to name os, machine"),
        (GOOD, "", r"no row can be used; line 3: column os: missing"),
        (GOOD, SIDECAR + "cpuz: 3\n", "results.csv.yaml: cpuz: unknown key; did you mean cpus?"),
        (GOOD, SIDECAR + "clients: 3\n", "clients: the rows of results.csv say this"),
        (GOOD, SIDECAR + "family: generic\n", "family: the rows of results.csv say this"),
        (GOOD, SIDECAR + "measured_at: lately\n", "measured_at: 'lately' is no date"),
        (GOOD, SIDECAR + "mhz: [1, 2]\n", "mhz: one value is expected"),
        (GOOD, SIDECAR + "not_interpreted: QM CPU\n", "not_interpreted: a list of column headers"),
        (GOOD, SIDECAR + "not_interpreted: [CPU]\n", "no column 'CPU' in results.csv"),
        (GOOD, SIDECAR + "source: '!!!'\n", "no letter or digit"),
        (GOOD, "- os\n", "column: value on each line"),
        (GOOD, "os: [linux\n", "no readable YAML.*line 2"),
        (GOOD, "[" * 5000, "no readable YAML"),
        (GOOD, "#" * 70_000, "at most 64 KB"),
        (GOOD, SIDECAR.replace("linux", "plan9"), "line 3: column os: 'plan9'.*allowed: solaris"),
        (f"{HEADER}\n1,2048,4,253.7,13.76,8.27\n", SIDECAR, "line 2: no comment above says when"),
        (DATED.replace("Threads, ", "") + "1,2048,1,1,1\n", SIDECAR, "line 2: no column Threads"),
        (
            DATED.replace("Client CPU", "QM CPU") + "1,1,1,1,1,1\n",
            SIDECAR,
            "line 2: column QM CPU stands twice",
        ),
        ("# CSV Results\n1,2048,4,253.7\n", SIDECAR, "line 2: no line above names the columns"),
        (DATED, SIDECAR, "line 3: it ends without a row"),
        (f"{DATED}1,2048\n", SIDECAR, "no row can be used; line 3: 2 cells"),
        (b"", SIDECAR, "holds no text"),
        (b"# \x00\x01", SIDECAR, "binary, not text"),
        ("# Größe\n".encode("latin-1"), SIDECAR, r"not UTF-8 text \(line 1"),
        ("a,b\n1,2\n", None, "line 1: its columns are those of no harness format"),
    ],
)
def test_what_is_refused_names_the_place_and_the_reason(written, text, sidecar, reason):
    path = written(text, sidecar)
    with pytest.raises(Refused, match=reason):
        read_harness(path)


def test_a_file_that_is_not_there_or_no_table_is_refused(tmp_path, written):
    with pytest.raises(Refused, match="does not exist"):
        read_harness(tmp_path / "nothing.csv")
    with pytest.raises(Refused, match=r"none of \.csv"):
        read_harness(written("x", name="results.xlsx"))


def test_a_file_far_too_large_is_refused_unread(written, monkeypatch):
    monkeypatch.setattr(document_module, "MOST_BYTES", 10)
    with pytest.raises(Refused, match="at most 10 bytes"):
        read_harness(written(GOOD, SIDECAR))


def test_a_column_that_the_sidecar_does_not_trust_stays_in_bronze(read):
    figures = read(GOOD, SIDECAR + "not_interpreted: [QM CPU]\n").figures
    assert [figure.declared_as for figure in figures] == ["cphtestp/Rate (RT/s)", None, None]


def test_without_a_name_the_content_names_the_source(read):
    first, again = read(GOOD, SIDECAR, name="My Run (2).csv"), read(GOOD, SIDECAR, name="My Run (2).csv")
    assert first.card.source_id == f"harness-my-run-2-{first.card.document_sha256[:8]}"
    assert first == again
    other = read(GOOD.replace("253.7", "253.8"), SIDECAR, name="My Run (2).csv")
    assert other.card.source_id != first.card.source_id


def test_a_renamed_file_keeps_the_name_that_its_sidecar_gives(read):
    named = SIDECAR + "source: Cluster 7, Spring\n"
    ids = {read(GOOD, named, name=name).card.source_id for name in ("a.csv", "b.csv")}
    assert ids == {"harness-cluster-7-spring"}


def test_no_file_can_claim_to_be_a_report(written):
    claimed = read_harness(written(GOOD, SIDECAR), "wbimb-v5-solaris").card.source_id
    assert claimed == "harness-wbimb-v5-solaris"
    assert not any(source_id.startswith("harness-") for source_id in reports())
    assert read_harness(written(GOOD, SIDECAR), "harness-mine").card.source_id == "harness-mine"


def test_a_given_name_that_contradicts_the_sidecar_is_refused(written):
    path = written(GOOD, SIDECAR + "source: mine\n")
    assert read_harness(path, "mine").card.source_id == "harness-mine"
    with pytest.raises(Refused, match=r"is harness-mine by results\.csv\.yaml, not harness-yours"):
        read_harness(path, "yours")


@given(st.text(alphabet="0123456789,.#\n -abcPersistence", max_size=300))
def test_whatever_stands_in_a_file_it_is_read_alike_twice_or_refused(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("any") / "results.csv"
    path.write_text(f"{GOOD}{text}")
    path.with_name("results.csv.yaml").write_text(SIDECAR)
    try:
        first = read_harness(path)
    except Refused:
        return
    assert read_harness(path) == first
    ids = [figure.figure_id for figure in first.figures]
    assert len(ids) == len(set(ids))
    interpret_harness(first.figures)


def test_a_measurement_file_gives_a_figure_for_each_row(read):
    document = read(f"{COLUMNS}\n{ROW}\n{ROW.replace('1200.5', '1300')}\n", name="mine.csv")
    first, second = interpret_harness(document.figures)
    assert (first.metric, first.value, second.value) == ("throughput_msgs_per_s", 1200.5, 1300)
    assert (first.origin.column_header, first.origin.line) == ("value", 2)
    assert (first.published_at, first.exam_group) == (date(2024, 5, 6), "IBM MQ on box")
    assert first.configuration.workload.clients == 8


def test_any_family_and_metric_of_the_schema(read):
    text = (
        "metric,unit,value,family,measured_at,exam_group,queue_managers,rules_engines,failed_over,"
        "message_bytes,persistent,messages_per_commit\n"
        "cpu_idle_pct,%,12.5,rules_hub,2024-05-06T10:11:12,first,5,1,false,1024,true,25\n"
    )
    (idle,) = interpret_harness(read(text, SIDECAR).figures)
    assert (idle.metric, idle.value, idle.exam_group) == ("cpu_idle_pct", 12.5, "first")
    assert idle.configuration.platform.machine == "box"


def test_what_says_where_an_exported_row_came_from_is_passed_over(read):
    text = f"figure_id,source_id,line,{COLUMNS}\nwbimb-v5-solaris:9:0,wbimb-v5-solaris,9,{ROW}\n"
    (figure,) = read(text).figures
    assert figure.origin.source_id.startswith("harness-")
    assert figure.origin.line == 2


def test_an_exported_header_is_understood_whole(read):
    columns = MEASUREMENTS.columns
    printed = dict(zip(COLUMNS.split(","), ROW.split(","), strict=True)) | {"unit": "msgs/s"}
    text = ",".join(columns) + "\n" + ",".join(printed.get(name, "") for name in columns) + "\n"
    (measured,) = interpret_harness(read(text).figures)
    assert measured.value == 1200.5


@pytest.mark.parametrize("value", ["-3", "many", "nan", "9" * 400, "9" * 400 + " to " + "9" * 401, "1e999"])
def test_a_value_that_cannot_be_keeps_its_declaration(read, value):
    document = read(f"{COLUMNS}\n{ROW.replace('1200.5', value)}\n")
    (figure,) = document.figures
    assert (figure.declared_as, figure.origin.printed) == ("measurements/value", value)
    assert document.remark is None
    (measured,) = interpret_harness(document.figures)
    assert measured.value is None or measured.value < 0


def test_values_may_have_an_exponent(read):
    (measured,) = interpret_harness(read(f"{COLUMNS}\n{ROW.replace('1200.5', '1.2e+03')}\n").figures)
    assert (measured.value, measured.qualifier) == (1200, "exact")
    assert (measured.printed_low, measured.printed_high) == (1150, 1250)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("throughput_msgs_per_s", "throughput", "column metric: 'throughput' is not known; did you mean"),
        ("request_reply", "reply", "column family: 'reply' is not known"),
        ("linux", "", "column os: missing"),
        ("linux", "plan9", "column os: 'plan9'"),
        ("2024-05-06", "yesterday", "no date like"),
        ("1200.5", "", "column value is empty"),
        ("true", "true,more", "13 cells under 12 columns"),
    ],
)
def test_a_row_that_is_not_understood_stays_in_bronze(read, old, new, reason):
    document = read(f"{COLUMNS}\n{ROW}\n{ROW.replace(old, new)}\n")
    assert len(interpret_harness(document.figures)) == 1
    assert "line 3: " + reason in document.remark
    kept = [figure.declared_as for figure in document.figures if figure.origin.line == 3]
    assert kept == ([] if old == "1200.5" else [None])


@pytest.mark.parametrize(("column", "cell"), [("unit", "%"), ("fact_kind", "claim")])
def test_another_unit_or_a_claim_is_not_a_measurement(read, column, cell):
    document = read(f"{column},{COLUMNS}\n,{ROW}\n{cell},{ROW}\n")
    assert f"line 3: column {column}: '{cell}'" in document.remark


@pytest.mark.parametrize(
    ("text", "sidecar", "reason"),
    [
        (f"{COLUMNS}\n".replace("family,", ""), None, "line 1: no column family"),
        (f"{COLUMNS}\n".replace("published_at,", ""), None, "line 1: no column published_at or measured_at"),
        (f"{COLUMNS},cpuz\n", None, "line 1: column 'cpuz' is unknown; did you mean cpus?"),
        (f"{COLUMNS},qqq\n", None, "line 1: column 'qqq' is unknown; not_interpreted in results.csv.yaml"),
        (f"{COLUMNS},os\n", None, "line 1: column 'os' stands twice"),
        (f"{COLUMNS}\n", None, "it ends without a row"),
        (f'{COLUMNS}\n"a\n', None, "line 3: unexpected end of data"),
        (f"{COLUMNS}\n{ROW.replace('throughput', 'x')}\n", None, "no row can be used; line 2: column metric"),
    ],
)
def test_measurement_files_that_are_refused(written, text, sidecar, reason):
    path = written(text, sidecar)
    with pytest.raises(Refused, match=reason):
        read_harness(path)


def test_a_sidecar_fills_what_a_measurement_file_lacks(read):
    rows = "metric,value,room,clients,message_bytes,persistent\nthroughput_msgs_per_s,12,7,3,1024,0\n"
    told = SIDECAR + "family: request_reply\nmeasured_at: 2024-05-06\nnot_interpreted: [room]\n"
    document = read(rows, told)
    (measured,) = interpret_harness(document.figures)
    assert (measured.configuration.platform.cpus, measured.published_at) == (4, date(2024, 5, 6))
    assert [figure.declared_as for figure in document.figures] == ["measurements/value", None]
