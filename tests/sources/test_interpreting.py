"""What figures mean, and what follows from what."""

from dataclasses import replace

import pytest

from twin.sources.interpreting import BadReference, interpret
from twin.sources.reading import read_figures


@pytest.fixture
def measured(document, report):
    def of(label, changes=()):
        lines = document.lines
        for old, new in changes:
            lines = tuple(line.replace(old, new) for line in lines)
        figures = read_figures(replace(document, lines=lines), report)
        return [m for m in interpret(figures, report) if m.origin.table_label == label]

    return of


def contradicted(measurement):
    return (
        measurement.printed_high < measurement.derived_low
        or measurement.printed_low > measurement.derived_high
    )


def test_a_figure_gets_metric_value_unit_and_configuration(measured):
    rate, busy, _ = measured("10.1")[3:]
    assert (rate.metric, rate.value, rate.unit) == ("throughput_msgs_per_s", 100.0, "msgs/s")
    assert (busy.metric, busy.value, busy.unit) == ("cpu_busy_pct", 5.0, "%")
    assert rate.configuration.workload.persistent is True
    assert rate.configuration.workload.message_bytes == 1024
    assert rate.configuration_id == busy.configuration_id
    assert rate.exam_group == "10.1"


def test_ranges_clock_times_and_what_does_not_apply(measured):
    _, cpu, recovery, _, _, none = measured("Table 7")
    assert (cpu.qualifier, cpu.value, cpu.value_low, cpu.value_high) == ("range", None, 60, 80)
    assert recovery.value == 141
    assert (none.qualifier, none.value) == ("not_applicable", None)


def test_a_sum_over_two_boxes(measured):
    totals = [m for m in measured("Figure 1") if m.derivation_rule == "sum"]
    assert [(m.derived_low, m.derived_high, contradicted(m)) for m in totals] == [
        (40, 42, False), (60, 62, True),
    ]  # fmt: skip


def test_a_printed_derivation_is_a_figure_of_its_own_and_checks_its_neighbour(measured):
    cost, derivation, *_ = measured("Kinds")
    assert (derivation.value, derivation.fact_kind) == (80.0, "derived")
    assert (cost.derived_low, cost.derived_high) == (80, 80)
    wrong = measured("Kinds", [("80 (20", "90 (20")])[0]
    assert contradicted(wrong)


def test_a_difference_accuses_what_is_left_over(measured):
    used = [m for m in measured("USAGE") if m.derivation_rule == "difference"]
    assert [contradicted(m) for m in used] == [False, True]


def test_prose_that_repeats_a_table_is_linked_to_it(measured):
    _, fast, slow, factor = measured("1")
    rates = [m for m in measured("10.1") if m.metric == "throughput_msgs_per_s"]
    assert [fast.restates, slow.restates] == [m.figure_id for m in rates]
    assert not contradicted(fast)
    assert factor.value == 10
    assert not contradicted(factor)
    assert contradicted(measured("1", [("100 msgs/second: ten", "120 msgs/second: ten")])[2])


def test_a_part_that_contradicts_itself_does_not_accuse_the_total(document, report):
    """The printed 21 of the second box should be 20 x 1; the total of 40 that used the 20 is right."""
    table = report.tables[1]
    product = {"rule": "product", "formula": "20 * 1"}
    columns = [column.model_dump() for column in table.columns]
    columns[5]["facts"][0]["derivation"] = product
    changed = type(report).model_validate(
        report.model_dump()
        | {"tables": [report.tables[0].model_dump(), table.model_dump() | {"columns": columns}]}
        | {"statements": []}
    )
    text = replace(
        document, lines=tuple(line.replace("1\t20\t20\t41", "1\t20\t20\t40") for line in document.lines)
    )
    found = [m for m in interpret(read_figures(text, changed), changed) if m.origin.line == 23]
    by_rule = {m.derivation_rule: contradicted(m) for m in found if m.derivation_rule}
    assert by_rule == {"product": True, "sum": False}


def test_nothing_follows_from_what_is_no_number(measured):
    changes = [("| 1000.00 |", "| lots |")]
    rate = measured("10.1", changes)[0]
    assert (rate.value, rate.qualifier) == (None, "text")
    _, fast, _, factor = measured("1", changes)
    assert (fast.restates, fast.derived_low) == (rate.figure_id, None)
    assert factor.derivation_rule is None


def test_a_reference_to_nothing_is_an_error_of_the_declaration(measured, document, report):
    lost = report.statements[1].facts[0].restates.model_copy(update={"table": "99"})
    fact = report.statements[1].facts[0].model_copy(update={"restates": lost})
    statements = [report.statements[0], report.statements[1].model_copy(update={"facts": [fact]})]
    broken = report.model_copy(update={"statements": statements})
    with pytest.raises(BadReference, match="refers to nothing"):
        interpret(read_figures(document, broken), broken)
