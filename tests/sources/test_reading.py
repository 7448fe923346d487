from dataclasses import replace

import pytest
from twin.sources.report import recognise

from twin.sources.document import Document, UnreadableDocument
from twin.sources.reading import MissingColumn, interpret, read_figures


def with_text(document, old, new):
    return replace(document, lines=tuple(line.replace(old, new) for line in document.lines))


def test_figures_of_declared_tables_carry_their_line_and_characters(document, report):
    figures = read_figures(document, report)
    assert [(f.origin.line, f.origin.column_header, f.origin.printed) for f in figures] == [
        (11, "Msgs/sec", "1000.00"),
        (11, "% CPU Busy", "50.00"),
        (11, "CPU ms/msg", "1.00"),
        (13, "Msgs/sec", "100.00"),
        (13, "% CPU Busy", "5.00"),
        (13, "CPU ms/msg", "1.00"),
    ]
    assert [document.lines[f.origin.line - 1].count(f.origin.printed) > 0 for f in figures] == [True] * 6
    assert figures[4].figure_id == "imaginary-9:13:1"


def test_a_figure_gets_metric_value_and_configuration(document, report):
    rate, busy, _ = (interpret(figure, report) for figure in read_figures(document, report)[3:])
    assert (rate.metric, rate.value, rate.unit) == ("throughput_msgs_per_s", 100.0, "msgs/s")
    assert (busy.metric, busy.value, busy.unit) == ("cpu_busy_pct", 5.0, "%")
    assert rate.configuration.workload.persistent is True
    assert rate.configuration_id == busy.configuration_id
    assert rate.exam_group == "10.1"


def test_missing_column_is_named_with_its_table_and_line(document, report):
    with pytest.raises(MissingColumn, match=r"table 10\.1 \(line 9\) has no column Msgs/sec"):
        read_figures(with_text(document, "Msgs/sec", "Rate"), report)


def test_a_document_is_recognised_by_its_content(document, report):
    assert recognise(document, [report]) is report
    assert recognise(with_text(document, "Imaginary", "Other"), [report]) is None


def test_empty_and_binary_files_are_refused(tmp_path):
    empty, binary = tmp_path / "empty.txt", tmp_path / "binary.txt"
    empty.write_text(" \n")
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UnreadableDocument, match="empty"):
        Document.load(empty)
    with pytest.raises(UnreadableDocument, match="byte 0"):
        Document.load(binary)
