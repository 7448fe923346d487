"""What people may ask of a table, and what is never run."""

from __future__ import annotations

import dataclasses
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import QueryBuilder, write_deltalake
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from features.arrow import arrow_schema
from features.lake import Lake
from features.predicates import MOST_CHARACTERS, MOST_LEVELS, BadPredicate, checked, one_of
from twin.core.settings import Settings
from twin.core.tables import FINDINGS, MEASUREMENTS, SAMPLES

TEXTS = ("error", "warning", "it's", "back\\slash", "100%", "Übersicht", "a_b", "", None)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    home = tmp_path_factory.mktemp("predicates")
    settings = dataclasses.replace(Settings.from_environment(), home=home, lake_uri=(home / "lake").as_uri())
    lake = Lake(settings)
    found = arrow_schema(FINDINGS)
    rows = [
        {
            "line": line,
            "severity": text,
            "source_id": f"s{line % 3}",
            "rule": "r",
            "figure_id": f"f{line}{at}",
        }
        for line in range(4)
        for at, text in enumerate(TEXTS)
    ]
    Path(lake.uri(FINDINGS).removeprefix("file://")).mkdir(parents=True)
    write_deltalake(lake.uri(FINDINGS), pa.Table.from_pylist(rows, found))
    measured = [
        {"source_id": "x", "figure_id": "f", "line": 7, "value": 12.5, "metric": "throughput_msgs_per_s",
         "persistent": True, "failed_over": False, "published_at": date(2004, 5, 1)}
    ]  # fmt: skip
    Path(lake.uri(MEASUREMENTS).removeprefix("file://")).mkdir(parents=True)
    write_deltalake(lake.uri(MEASUREMENTS), pa.Table.from_pylist(measured, arrow_schema(MEASUREMENTS)))
    return lake


@pytest.mark.parametrize(
    ("where", "rows"),
    [
        ("metric = 'throughput_msgs_per_s' AND persistent", 1),
        ("source_id = 'mqsi-v11-solaris' AND failed_over", 0),
        ("source_id = 'wbimb-v5-solaris' AND line = 929", 0),
        ("line < 0", 0),
        ("fact_kind = 'measurement' AND restates IS NULL AND configuration_id IS NOT NULL AND value > 0", 0),
        ("published_at < '2010-01-01' AND published_at >= DATE '2004-05-01'", 1),
        ("value BETWEEN 12 AND 13 AND NOT failed_over", 1),
        ("VALUE * 2 = 25 AND round(value) IN (12, 13)", 1),
        ("lower(metric) LIKE '%put_msgs%' AND metric ILIKE 'THROUGH%'", 1),
        ("regexp_like(metric, '^through') AND metric ~ 's$'", 1),
        ("length(source_id) = 1 AND upper(substring(source_id, 1, 1)) = 'X'", 1),
        ("coalesce(os, 'none') = 'none' AND abs(-line) = 7 AND line % 2 = 1", 1),
        ("trim(source_id) = 'x' AND starts_with(metric, 'through')", 1),
        ("persistent IS TRUE AND os IS DISTINCT FROM 'aix' AND \"line\" <> 8 AND line != 9", 1),
        ("CAST(value AS INT) = 12 AND line NOT IN (1, 2)", 1),
        ("source_id = 'it''s; DROP TABLE x -- \\'", 0),
    ],
)
def test_conditions_over_columns_are_run(lake, where, rows):
    assert lake.arrow(MEASUREMENTS, where=where).num_rows == rows


def test_a_month_of_samples_can_be_asked_for():
    assert checked("tool = 'mqcph' AND month = '2026-11'", SAMPLES)


@pytest.mark.parametrize(
    "where",
    [
        "",
        " ",
        "line >",
        "line = 1; DROP TABLE findings",
        "1 = 1) UNION (SELECT 1",
        "line = 1 UNION SELECT 1",
        "line IN (SELECT line FROM findings)",
        "line = (SELECT max(line) FROM findings)",
        "EXISTS (SELECT 1)",
        "line = 1 OR line IN (VALUES (1))",
        "information_schema.tables.table_name = 'x'",
        "findings.line = 1",
        "line = 1 -- AND severity = 'error'",
        "line = 1 /* really */",
        "/* */ line = 1",
        "count(*) > 1",
        "max(line) = 1",
        "row_number() OVER () = 1",
        "sum(line) OVER (ORDER BY line) > 1",
        "version() = 'x'",
        "current_date > '2000-01-01'",
        "now() > '2000-01-01'",
        "random() < 0.5",
        "read_csv('/etc/passwd') = 'x'",
        "repeat(severity, 1000000000) = 'x'",
        "lpad(severity, 2000000000) = 'x'",
        "line = ANY(ARRAY[1])",
        "line = :line",
        "line = $1",
        "line = ?",
        "line = @line",
        "severity = $$error$$",
        "severity = E'\\x41'",
        "severity LIKE 'a!%' ESCAPE '!'",
        "CASE WHEN line = 1 THEN TRUE END",
        "CAST(line AS BLOB) = 'x'",
        "line::regclass = 'x'",
        "severity COLLATE \"C\" = 'x'",
        "line = 1 LIMIT 1",
        "line = 1 ORDER BY line",
        "line = 1 AS x",
        "line, severity",
        "*",
        "{{ line }} = 1",
        "[line] = 1",
        "line = 1\0",
        "line\n= 1",
        "line",
        "severity + 1 = 2",
        "severity ~ '('",
        "line IN ()",
        "line = 1" + " OR line = 1" * MOST_CHARACTERS,
        "(" * (MOST_LEVELS + 1) + "line = 1" + ")" * (MOST_LEVELS + 1),
        "(" * 1900 + "line = 1" + ")" * 1900,
        "NOT " * 900 + "failed",
        "line = " + "-" + " -" * 1800 + "1",
        "lower(" * 600 + "severity" + ")" * 600,
    ],
)
def test_anything_else_is_refused_in_a_sentence(lake, where):
    with pytest.raises(BadPredicate) as refused:
        lake.arrow(FINDINGS, where=where)
    told = str(refused.value)
    assert "\n" not in told
    assert len(told) < 700


def test_a_column_that_is_not_there_gets_the_nearest_name():
    with pytest.raises(BadPredicate, match="did you mean severity"):
        checked("severty = 'error'", FINDINGS)
    with pytest.raises(BadPredicate, match="`twin schema findings` lists"):
        checked("nothing = 1", FINDINGS)


def test_a_predicate_as_long_as_may_be_is_run(lake):
    where = " OR ".join(["line = 1"] * (MOST_CHARACTERS // 12))
    assert lake.arrow(FINDINGS, where=where).num_rows == len(TEXTS)
    deep = "(" * (MOST_LEVELS - 1) + "line = 1" + ")" * (MOST_LEVELS - 1)
    assert lake.arrow(FINDINGS, where=deep).num_rows == len(TEXTS)


def test_values_of_any_characters_can_be_listed(lake):
    asked = [text for text in TEXTS if text]
    assert lake.arrow(FINDINGS, where=one_of("severity", asked)).num_rows == 4 * len(asked)


def test_what_is_run_is_written_anew():
    assert checked("LINE=1 and not failed_over or persistent", MEASUREMENTS) == (
        '(("line" = 1) AND (NOT "failed_over")) OR "persistent"'
    )


_TEXT = st.sampled_from([text.replace("'", "''") for text in TEXTS if text is not None]).map(
    lambda t: f"'{t}'"
)
_NUMBER = st.sampled_from(
    ["line", "-line", "line + 1", "line * 2 - 1", "1", "2.5", "line % 2", "10 / 4", "line - 1 - 1"]
)
_STRING = st.one_of(
    _TEXT, st.sampled_from(["severity", "source_id", "lower(severity)", "coalesce(severity, 'x')"])
)
_SINGLE = st.one_of(
    st.builds("{} {} {}".format, _NUMBER, st.sampled_from(["=", "<", "<=", ">", ">=", "<>", "!="]), _NUMBER),
    st.builds(
        "{} {} {}".format, _STRING, st.sampled_from(["=", "<>", "<", "LIKE", "NOT LIKE", "ILIKE"]), _STRING
    ),
    st.builds("{} {} ({}, {})".format, _STRING, st.sampled_from(["IN", "NOT IN"]), _STRING, _STRING),
    st.builds(
        "{} {} {} AND {}".format, _NUMBER, st.sampled_from(["BETWEEN", "NOT BETWEEN"]), _NUMBER, _NUMBER
    ),
    st.builds("{} IS {}NULL".format, _STRING, st.sampled_from(["", "NOT "])),
)
_CONDITION = st.recursive(
    _SINGLE,
    lambda inner: st.one_of(
        st.builds("{} {} {}".format, inner, st.sampled_from(["AND", "OR"]), inner),
        st.builds("NOT {}".format, inner),
        st.builds("({})".format, inner),
    ),
    max_leaves=5,
)


@hypothesis_settings(
    max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)
@given(where=_CONDITION)
def test_what_is_run_says_what_was_written(lake, where):
    """The engine's own reading of the text, and its reading of what we make of it, keep the same rows."""
    table = QueryBuilder().register("findings", lake.delta(FINDINGS))
    query = f"SELECT figure_id FROM findings WHERE ({where}) ORDER BY figure_id"
    theirs = pa.table(table.execute(query).read_all())["figure_id"].to_pylist()
    ours = lake.arrow(FINDINGS, where=where)["figure_id"].to_pylist()
    assert sorted(ours) == theirs
