"""Figures of every layout, with their line and their characters."""

from dataclasses import replace

import pytest

from twin.sources.declarations import RowDeclaration
from twin.sources.layouts import MissingTable
from twin.sources.reading import MissingStatement, read_figures, read_unknown, recognise


def with_text(document, old, new):
    return replace(document, lines=tuple(line.replace(old, new) for line in document.lines))


def printed(figures, label):
    return [(f.origin.column_header, f.origin.printed) for f in figures if f.origin.table_label == label]


@pytest.fixture
def figures(document, report):
    return read_figures(document, report)


def test_every_figure_stands_on_its_line(figures, document):
    assert all(f.origin.printed in document.lines[f.origin.line - 1] for f in figures)
    assert len({f.figure_id for f in figures}) == len(figures)


def test_pipe_table(figures):
    assert printed(figures, "10.1") == [
        ("Msgs/sec", "1000.00"), ("% CPU Busy", "50.00"), ("CPU ms/msg", "1.00"),
        ("Msgs/sec", "100.00"), ("% CPU Busy", "5.00"), ("CPU ms/msg", "1.00"),
    ]  # fmt: skip
    second = [f for f in figures if f.origin.table_label == "10.1"][4]
    assert second.figure_id == f"imaginary-9:{second.origin.line}:1"
    assert second.row_keys == '{"Persist": "Yes", "Msg Size": "1,024"}'


def test_boxes_side_by_side_keep_their_own_keys(figures):
    box = [f for f in figures if f.origin.table_label == "Figure 1"]
    assert [(f.origin.box, f.origin.printed) for f in box[:4]] == [
        ("A1", "20"), ("A1", "20"), (None, "41"), ("A2", "21"),
    ]  # fmt: skip
    assert '"box": "A1", "box_line": "21"' in box[0].row_keys


def test_markup_and_several_figures_in_a_cell(figures):
    assert printed(figures, "Kinds") == [
        ("Cost", "80"), ("Cost", "(20 *4)"), ("Share", "N/A"),
        ("Cost", "240"), ("Cost", "(60*4)"), ("Share", "3.0"),
    ]  # fmt: skip


def test_scanned_rows(figures):
    assert printed(figures, "Table 7")[:3] == [
        ("Rate", "98.4"),
        ("CPU", "approx. 60-80"),
        ("Recovery", "2:21"),
    ]


def test_system_display_with_a_page_break_and_merged_cells(figures):
    assert [text for _, text in printed(figures, "USAGE")] == ["100", "90", "10", "100", "95", "0"]


def test_figures_in_prose(figures):
    prose = [f.origin for f in figures if f.origin.source_kind == "prose"]
    assert [(o.line, o.printed) for o in prose] == [(9, "64"), (9, "1000"), (10, "100"), (10, "ten")]


def test_a_cell_that_is_no_number_is_a_figure_as_it_stands(document, report):
    figures = read_figures(with_text(document, "1000.00", "lots"), report)
    assert printed(figures, "10.1")[0] == ("Msgs/sec", "lots")


def test_missing_column_is_named_with_its_table_and_line(document, report):
    with pytest.raises(MissingTable, match=r"table 10\.1 \(line 14\) has no column Msgs/sec"):
        read_figures(with_text(document, "Msgs/sec", "Rate"), report)


def test_truncated_document_names_the_first_table_it_lacks(document, report):
    with pytest.raises(MissingTable, match="Figure 1"):
        read_figures(replace(document, lines=document.lines[:18]), report)


def test_a_row_that_is_not_declared_is_named(document, report):
    table = report.tables[2]
    rows = [RowDeclaration(label="Small", facts=table.columns[1].facts)]
    declared = report.model_copy(
        update={"tables": [table.model_copy(update={"rows": rows})], "statements": []}
    )
    with pytest.raises(MissingTable, match=r"Kinds \(line 30\): no row 'Large"):
        read_figures(document, declared)


def test_missing_sentence_is_named(document, report):
    with pytest.raises(MissingStatement, match="approximately"):
        read_figures(with_text(document, "approximately", "roughly"), report)


def test_a_document_is_recognised_by_its_content(document, report):
    assert recognise(document, {"x": report}) is report
    assert recognise(with_text(document, "Imaginary", "Other"), {"x": report}) is None


def test_an_unknown_document_gives_its_cells_without_meaning(document):
    figures = read_unknown(document, "unknown-1")
    assert {f.declared_as for f in figures} == {None}
    assert ("Msgs/sec", "1000.00") in [(f.origin.column_header, f.origin.printed) for f in figures]
