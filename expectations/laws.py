"""The laws that figures obey. A law is one query over the measurements that returns the rows that break it.

Every query selects the columns of a finding except its rule and severity. `{batch}` is the table. A law
accuses the figure that was derived, allows for everything that rounds to the printed digits, and where runs
vary, for the noise of a run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from twin.core.configuration import Configuration
from twin.core.fields import Field, fields_of
from twin.core.metrics import METRICS

_CONFIGURATION = tuple(field.name for field in fields_of(Configuration))

# Two runs of one configuration differ by up to 3.7% (one standard deviation, the reports' repeats); three
# standard deviations of the difference of two runs
NOISE = 0.15


@dataclass(frozen=True)
class Law:
    name: str
    severity: Literal["error", "warning"]
    description: str
    query: str


UTILISATION = Law(
    "utilisation_law",
    "error",
    "CPU ms per message = busy share x processors / rate, as exactly as the printed digits allow",
    """
    WITH rate AS (SELECT * FROM {batch} WHERE metric = 'throughput_msgs_per_s' AND restates IS NULL),
         busy AS (SELECT * FROM {batch} WHERE metric = 'cpu_busy_pct' AND restates IS NULL)
    SELECT cost.figure_id, source_id, line, cost.printed,
      format_string('%.2f', busy.value * cost.cpus * 10 / rate.value) AS expected,
      format_string('%s%% of %d processors at %s msgs/s', busy.printed, cost.cpus, rate.printed) AS message
    FROM {batch} AS cost
      JOIN rate USING (source_id, line, configuration_id) JOIN busy USING (source_id, line, configuration_id)
    WHERE cost.metric = 'cpu_ms_per_msg' AND (
      cost.printed_high < busy.printed_low * cost.cpus * 10 / rate.printed_high
      OR cost.printed_low > busy.printed_high * cost.cpus * 10 / rate.printed_low
    )
    """,
)

_CONTRADICTS = """(
      printed_high < derived_low - 1e-9 * abs(derived_low)
      OR printed_low > derived_high + 1e-9 * abs(derived_high)
    )"""
_WRONG_WAY_ROUND = """coalesce(
      derivation_rule IN ('ratio', 'restatement') AND derived_low < value + (printed_high - printed_low)
      AND derived_high > value - (printed_high - printed_low), false
    )"""


def _number(value: str) -> str:
    """A number as a person writes it."""
    return f"regexp_replace(format_string('%.4f', {value}), '[.]?0+$', '')"


_EXPECTED = f"""CASE WHEN metric = 'claim_holds' THEN 'otherwise'
        WHEN derived_high - derived_low < 1e-9 THEN {_number("derived_low")}
        ELSE concat({_number("derived_low")}, ' to ', {_number("derived_high")}) END AS expected"""


def _derived(rule: str, description: str, severity: Literal["error", "warning"] = "error") -> Law:
    return Law(
        rule,
        severity,
        description,
        f"""
    SELECT figure_id, source_id, line, printed, {_EXPECTED}, concat('follows from ', derivation) AS message
    FROM {{batch}} WHERE derivation_rule = '{rule}' AND {_CONTRADICTS} AND NOT {_WRONG_WAY_ROUND}
    """,
    )


ROUNDING = Law(
    "rounding",
    "warning",
    "A figure that follows from others is rounded to its nearest last digit",
    f"""
    SELECT figure_id, source_id, line, printed, {_EXPECTED}, concat('follows from ', derivation) AS message
    FROM {{batch}} WHERE {_CONTRADICTS} AND {_WRONG_WAY_ROUND}
    """,
)

_DIFFERENCES = ",\n        ".join(
    f"CASE WHEN NOT (said.{name} <=> stands.{name}) "
    f"THEN concat('{name} ', coalesce(string(stands.{name}), 'none')) END"
    for name in _CONFIGURATION
)
RESTATED_CONFIGURATION = Law(
    "restated_configuration",
    "error",
    "A figure that is repeated is repeated for the configuration it was measured with",
    f"""
    SELECT said.figure_id, said.source_id, said.line, said.printed,
      concat_ws(', ', {_DIFFERENCES}) AS expected,
      concat('repeats line ', string(stands.line), ' of table ', stands.table_label,
             ', which has another configuration') AS message
    FROM {{batch}} AS said JOIN {{batch}} AS stands ON said.restates = stands.figure_id
    WHERE said.configuration_id <> stands.configuration_id
    """,
)

CAPTION = Law(
    "label_against_caption",
    "warning",
    "The label of a table's box is the one its caption names",
    """
    SELECT figure_id, source_id, int(get_json_object(row_keys, '$.box_line')) AS line,
      get_json_object(row_keys, '$.box') AS printed, get_json_object(row_keys, '$.caption') AS expected,
      concat('the caption of ', table_label, ' names another box') AS message
    FROM (
      SELECT *, row_number() OVER (PARTITION BY source_id, table_label ORDER BY line, column_index) AS first
      FROM {batch} WHERE get_json_object(row_keys, '$.box') <> get_json_object(row_keys, '$.caption')
    ) WHERE first = 1
    """,
)

NUMBER = Law(
    "number_expected",
    "error",
    "What is measured, or follows from it, is a number, a range, or said not to apply",
    """
    SELECT figure_id, source_id, line, printed, 'a number' AS expected,
      concat('column ', column_header, ' of table ', table_label) AS message
    FROM {batch}
    WHERE source_kind = 'table' AND fact_kind IN ('measurement', 'derived') AND qualifier = 'text'
      AND value IS NULL
    """,
)


def _outside(metric: Field) -> str:
    low = (
        f"value {'<=' if metric.exclusive_minimum else '<'} {metric.minimum}"
        if metric.minimum is not None
        else ""
    )
    high = f"value > {metric.maximum}" if metric.maximum is not None else ""
    return " OR ".join(part for part in (low, high) if part)


def _by_metric(expression: Callable[[Field], str]) -> str:
    """What depends on the metric, of those that have a range."""
    bounded = [metric for metric in METRICS.values() if metric.range_text]
    return "CASE metric " + " ".join(f"WHEN '{one.name}' THEN {expression(one)}" for one in bounded) + " END"


# one column holds the values of all metrics, so its range depends on the row
VALUE_IN_RANGE = Law(
    "value_in_range",
    "error",
    "A value lies in its metric's range",
    f"""
    SELECT figure_id, source_id, line, printed,
      {_by_metric(lambda metric: f"'{metric.range_text}'")} AS expected,
      concat(metric, ' is ', string(value)) AS message
    FROM {{batch}} WHERE {_by_metric(_outside)}
    """,
)

SHIFTED_CELLS = Law(
    "shifted_cells",
    "error",
    "Cells of a column do not repeat the cells a few rows above them and push the rest down",
    """
    WITH cell AS (
      SELECT *, row_number() OVER place AS row
      FROM {batch} WHERE source_kind = 'table' AND length(regexp_replace(printed, '[^0-9]', '')) >= 3
      WINDOW place AS (PARTITION BY source_id, table_label, column_index ORDER BY line)
    ), repeated AS (
      SELECT here.source_id, here.table_label, here.column_index, here.row, here.row - above.row AS shift,
        here.printed
      FROM cell AS here JOIN cell AS above USING (source_id, table_label, column_index)
      WHERE here.printed = above.printed AND here.row - above.row BETWEEN 2 AND 6
    ), run AS (
      SELECT source_id, table_label, column_index, min(first.row) AS row, min(shift) AS shift
      FROM repeated AS first JOIN repeated AS second USING (source_id, table_label, column_index, shift)
      WHERE second.row = first.row + 1 AND second.printed <> first.printed
      GROUP BY source_id, table_label, column_index
    )
    SELECT figure_id, source_id, line, printed, 'the cell of its own row' AS expected,
      format_string(
        'from row %d on column %s repeats itself, shifted by %d rows', run.row, column_header, shift
      ) AS message
    FROM cell JOIN run USING (source_id, table_label, column_index) WHERE cell.row >= run.row
    """,
)

REPEATED_TABLE = Law(
    "repeated_table",
    "warning",
    "A table does not print the rows of another under another name",
    """
    WITH line AS (
      SELECT source_id, table_label, line, min(figure_id) AS figure_id,
        min_by(printed, column_index) AS printed, min(keys) AS keys,
        concat_ws(' ', transform(array_sort(collect_list(struct(column_index, printed))), x -> x.printed))
          AS cells
      FROM (
        SELECT *, regexp_replace(row_keys, '"(box|caption)[a-z_]*": "[^"]*"(, )?', '') AS keys
        FROM {batch} WHERE source_kind = 'table' AND restates IS NULL AND fact_kind = 'measurement'
      ) GROUP BY source_id, table_label, line
    ), pair AS (
      SELECT later.source_id, later.table_label, earlier.table_label AS other, later.line,
        earlier.line AS other_line, later.figure_id, later.printed, later.cells
      FROM line AS later JOIN line AS earlier USING (source_id, keys, cells)
      WHERE later.table_label <> earlier.table_label AND later.line > earlier.line
    ), tables AS (
      SELECT source_id, table_label, other, count(*) AS same, count(DISTINCT cells) AS different
      FROM pair GROUP BY source_id, table_label, other
    ), size AS (SELECT source_id, table_label, count(*) AS lines FROM line GROUP BY source_id, table_label)
    SELECT pair.figure_id, source_id, pair.line, pair.printed, 'a measurement of its own' AS expected,
      format_string(
        'the row of line %d in table %s again; %d of %d rows are',
        min(other_line), min_by(other, other_line), max(same), max(lines)
      ) AS message
    FROM pair JOIN tables USING (source_id, table_label, other) JOIN size USING (source_id, table_label)
    WHERE same >= 3 AND different >= 3 AND same >= 0.6 * lines
    GROUP BY pair.figure_id, source_id, pair.line, pair.printed
    """,
)


def _never_less(
    name: str, growing: str, description: str, costs: dict[str, float], rates: dict[str, float]
) -> Law:
    """Of two figures whose configurations differ in one column only, the larger one does not cost less nor go
    faster, beyond the noise that is given for each metric."""
    same = ", ".join(column for column in _CONFIGURATION if column != growing)
    metrics = ", ".join(f"'{metric}'" for metric in (*costs, *rates))
    breaks = " ".join(
        [f"WHEN '{metric}' THEN value < smaller_value * (1 - {noise})" for metric, noise in costs.items()]
        + [f"WHEN '{metric}' THEN value > smaller_value * (1 + {noise})" for metric, noise in rates.items()]
    )
    bound = " ".join([f"WHEN '{metric}' THEN 'at least '" for metric in costs] + ["ELSE 'at most '"])
    return Law(
        name,
        "warning",
        description,
        f"""
    SELECT figure_id, source_id, line, printed, concat(CASE metric {bound} END, smaller_printed) AS expected,
      format_string('{growing} %d, and less than with %d on line %d', {growing}, smaller, smaller_line)
        AS message
    FROM (
      SELECT *, lag({growing}) OVER growth AS smaller, lag(value) OVER growth AS smaller_value,
        lag(printed) OVER growth AS smaller_printed, lag(line) OVER growth AS smaller_line
      FROM {{batch}}
      WHERE metric IN ({metrics}) AND source_kind = 'table' AND restates IS NULL
        AND configuration_id IS NOT NULL
      WINDOW growth AS (PARTITION BY source_id, table_label, metric, box, {same} ORDER BY {growing}, line)
    )
    WHERE {growing} > smaller AND CASE metric {breaks} END
    """,
    )


_TIMES = {"elapsed_ms": NOISE}
_RATES = {"throughput_msgs_per_s": NOISE}
# storage is counted, not timed
_STORAGE = {"channel_memory_kb": 0.0}

# Standard deviations of the rows around a fit. Normal errors would never be as far off, and the fit's own
# shortcomings are in the scatter that it is measured by.
_TOO_FAR = 5

MODEL_RESIDUAL = Law(
    "model_residual",
    "warning",
    "A figure lies around what the calibrated model says, as far as runs scatter",
    f"""
    SELECT figure_id, source_id, line, printed, {_number("fitted_value")} AS expected,
      format_string('%.1f standard deviations from the model of %s', abs(deviations), system) AS message
    FROM {{batch}} WHERE abs(deviations) > {_TOO_FAR}
    """,
)
RESIDUAL_LAWS: tuple[Law, ...] = (MODEL_RESIDUAL,)

MEASUREMENT_LAWS: tuple[Law, ...] = (
    UTILISATION,
    _derived("restatement", "A figure that is repeated has the value it repeats"),
    _derived("sum", "A total is the sum of its parts"),
    _derived("product", "A product is the product of its factors"),
    _derived("ratio", "A ratio is the quotient of its figures"),
    _derived("difference", "A difference is what its figures leave"),
    _derived("count", "A count agrees with what was counted"),
    # words leave room: what a claim in prose contradicts is told, and stays
    _derived("claim", "A claim agrees with the figures it is about", "warning"),
    ROUNDING,
    RESTATED_CONFIGURATION,
    CAPTION,
    NUMBER,
    VALUE_IN_RANGE,
    SHIFTED_CELLS,
    REPEATED_TABLE,
    _never_less("larger_message_faster", "message_bytes", "A larger message is not faster", _TIMES, _RATES),
    _never_less(
        "larger_message_smaller", "message_bytes", "A larger message takes no less storage", _STORAGE, {}
    ),
    _never_less(
        "more_subscribers_faster", "subscribers", "More subscribers are not served faster", _TIMES, _RATES
    ),
)
