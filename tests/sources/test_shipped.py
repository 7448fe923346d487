"""The shipped figures: the documents' own, all of them, each with a meaning."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from twin.sources.declarations import reports
from twin.sources.document import Document
from twin.sources.interpreting import interpret
from twin.sources.reading import read_figures, recognise
from twin.sources.shipped import shipped_figures

REPORTS = reports()


@pytest.mark.parametrize("source_id", REPORTS)
def test_reading_the_document_again_gives_the_shipped_figures(source_id, reports_dir):
    for path in reports_dir.glob("*.txt"):
        document = Document.load(path)
        report = recognise(document, REPORTS)
        if report is not None and report.source_id == source_id:
            assert document.sha256 == report.catalogue.document_sha256
            assert read_figures(document, report) == shipped_figures(source_id)
            return
    pytest.fail(f"no document in {reports_dir} is recognised as {source_id}")


@pytest.mark.parametrize("source_id", REPORTS)
def test_every_table_has_as_many_values_as_were_counted_by_hand(source_id, reports_dir):
    counts = reports_dir / "COUNTS.md"
    if not counts.exists():
        pytest.skip("no independent counts beside the documents")
    row = re.compile(rf"^\| {re.escape(source_id)} \| ([^|]+) \| (\d+) \| (\d+) \|$", re.MULTILINE)
    counted = {
        label.strip(): (int(lines), int(values)) for label, lines, values in row.findall(counts.read_text())
    }
    tables = [figure.origin for figure in shipped_figures(source_id) if figure.origin.source_kind == "table"]
    values = Counter(origin.table_label for origin in tables)
    lines = Counter(label for label, _ in {(origin.table_label, origin.line) for origin in tables})
    assert {label: (lines[label], values[label]) for label in values} == counted


@pytest.mark.parametrize("source_id", REPORTS)
def test_every_shipped_figure_has_a_meaning_and_an_id_of_its_own(source_id):
    figures = shipped_figures(source_id)
    measurements = interpret(figures, REPORTS[source_id])
    assert len({measurement.figure_id for measurement in measurements}) == len(figures) > 0


def test_the_broker_tables_that_repeat_a_measurement_are_one_configuration():
    report = REPORTS["wbimb-v5-solaris"]
    measurements = interpret(shipped_figures(report.source_id), report)
    tables = {
        label: {m.configuration_id for m in measurements if m.origin.table_label == label}
        for label in ("10.3.4", "10.11.1.1", "10.11.2.1", "10.11.1.2")
    }
    assert tables["10.3.4"] == tables["10.11.1.1"] == tables["10.11.2.1"]
    assert tables["10.3.4"].isdisjoint(tables["10.11.1.2"])
    groups = Counter(m.exam_group for m in measurements if m.origin.source_kind == "table")
    assert groups["10.3.4"] == 3 * 12
    assert "10.11.1.1" not in groups
