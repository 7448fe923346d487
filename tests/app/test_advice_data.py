"""The remedies of the reports: each suits the families that it names and stands where it says."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from itertools import product

import pytest
import yaml

from twin.app.advising import Remedy
from twin.app.describing import fields_named, flat_example
from twin.core.checking import problems_of
from twin.core.configuration import FAMILIES, Configuration
from twin.sources.declarations import reports
from twin.systems.model import Batch
from twin.systems.registry import BY_FAMILY

ADVICE = yaml.safe_load(resources.files("twin.app").joinpath("advice.yaml").read_text(encoding="utf-8"))
CHANGES = [remedy for remedy in ADVICE if "change" in remedy]

REQUIRED = {"name", "families", "bottlenecks", "says", "sources"}
OPTIONAL = {"when", "change", "metric"}
RELATIVE = ("times", "at_most", "at_least")
# what the reports were read for: some change, or a name where the twin has no column
WANTED = {
    "log behind a non-volatile cache": {"change": {"log_disk": "cached"}},
    "dedicated disks": {"change": {"disk_layout": "dedicated"}},
    "several compute nodes in one": {"change": {"compute_nodes": 1}},
    "shared queue with correlation id": {"change": {"subscriber_queues": "shared"}},
    "open-handle cache": {"name": "open queue handles"},
    "batches of about five": {"change": {"batch_size": {"at_least": 5}}},
    "trusted channels": {"change": {"trusted": True}},
    "retry interval": {"change": {"retry_interval_s": {"times": 2}}},
    "message suppression": {"change": {"suppressed_messages": {"at_least": 8}}},
    "SHARECNV": {"change": {"sharecnv": 1}},
    "asynchronous put": {"change": {"asynchronous_put": True}},
    "read-ahead": {"change": {"read_ahead": True}},
    "asynchronous put of a live broker": {"change": {"window": {"at_least": 256}}},
    "read-ahead of a live broker": {"change": {"prefetch": {"at_least": 200}}},
    "batches of a live broker": {"change": {"messages_per_commit": {"at_least": 5}}},
    "more instances": {"change": {"instances": {"times": 2}}},
    "more execution groups": {"change": {"execution_groups": {"times": 2}}},
    "non-persistent messages": {"change": {"persistent": False}},
    "smaller messages": {"change": {"message_bytes": {"times": 0.5}}},
    "more queue managers": {"change": {"queue_managers": {"at_least": 5}}},
    "threads of pooling processes": {"change": {"tuned": True}},
    "start method": {"change": {"start_method": "strmqm"}},
    "no properties": {"change": {"message_properties": 0}},
    "no selectors": {"change": {"selectors": 0}},
    "waiting getter": {"change": {"waiting_getter": True}},
    "SyncPointIfPersistent": {"change": {"syncpoint_if_persistent": True}},
    "asynchronous consume": {"change": {"consumption": "callback"}},
    "message format": {"change": {"input_format": "generic_xml"}},
    "more processors": {"change": {"cpus": {"times": 2}}},
    "faster network": {"change": {"network_mbps": {"times": 2}}},
    "trusted listener": {"name": "listener"},
}


def each(remedies):
    return [pytest.param(remedy, id=remedy["name"]) for remedy in remedies]


def any_of(wanted):
    return wanted if isinstance(wanted, list) else [wanted]


def suited(remedy, family):
    """The family's example in every way that the remedy is meant for."""
    conditions = remedy.get("when", {})
    for values in product(*map(any_of, conditions.values())):
        asked = flat_example(family) | dict(zip(conditions, values, strict=True))
        yield {name: value for name, value in asked.items() if value is not None}


def changed(configuration, remedy):
    given = {name: value for name, value in configuration.items() if value is not None}
    return given | Remedy.model_validate(remedy).changes(given)


@cache
def bottlenecks_of(family):
    """Stations that have something to do in the family's example, or when one of its columns differs; and
    those who circulate among them."""
    system, found = BY_FAMILY[family], set()
    for flat in varied_one_at_a_time(family):
        configuration = Configuration.from_flat(flat)
        if system.excuse(configuration):
            continue
        solution = system.evaluate(Batch([configuration]), system.at_priors()).solution
        if solution is not None:
            network = solution.network
            work = (network.rows("demand") + network.rows("background"))[:, 0]
            busy = zip(network.stations, work, strict=True)
            found |= {station.name for station, load in busy if load > 0 and station.kind != "delay"}
            found.add(network.customers)
    return found


def varied_one_at_a_time(family):
    example = flat_example(family)
    # most stations of a flow or a broker need persistent messages, or rows that a database changes
    bases = [example]
    if "persistent" in example:
        bases = [example | {"persistent": persistent} for persistent in (False, True)]
    if "database_operation" in example:
        rows = {"node": "database", "database_operation": "update", "esql": "none", "compute_nodes": 0}
        bases.append(example | rows | {"input_format": "none", "output_format": "none"})
    for base in bases:
        yield base
        for field in fields_named(family):
            for value in other_values(field, base):
                flat = base | {field.name: value}
                if not problems_of(flat):
                    yield flat


def other_values(field, base):
    if field.kind == "flag":
        return [False, True]
    if field.kind in ("integer", "number"):
        return [base[field.name] * 8] if field.name in base else []
    return field.choices


@pytest.mark.parametrize("remedy", each(ADVICE))
def test_a_remedy_says_what_it_is_for_in_a_line(remedy):
    assert remedy.keys() >= REQUIRED
    assert remedy.keys() <= REQUIRED | OPTIONAL
    assert remedy["families"]
    assert remedy["bottlenecks"]
    assert remedy["sources"]
    for text in (remedy["name"], remedy["says"]):
        assert text == " ".join(text.split())
    assert 0 < len(remedy["says"]) <= 160
    assert remedy["says"].endswith(".")


def test_names_are_unique():
    assert len({remedy["name"] for remedy in ADVICE}) == len(ADVICE)


@pytest.mark.parametrize("remedy", each(ADVICE))
def test_every_family_exists_and_has_the_columns(remedy):
    assert set(remedy["families"]) <= set(FAMILIES)
    for family in remedy["families"]:
        columns = {field.name for field in fields_named(family)}
        assert set(remedy.get("when", {})) <= columns, family
        assert set(remedy.get("change", {})) <= columns, family


@pytest.mark.parametrize("remedy", each(ADVICE))
def test_a_changed_configuration_is_one_that_can_be_asked_about(remedy):
    for family in remedy["families"]:
        for configuration in suited(remedy, family):
            assert problems_of(configuration) == []
            assert problems_of(changed(configuration, remedy)) == []


@pytest.mark.parametrize("remedy", each(CHANGES))
def test_a_change_is_plain_or_relative_to_a_number(remedy):
    assert remedy["change"]
    for family in remedy["families"]:
        kinds = {field.name: field.kind for field in fields_named(family)}
        for name, new in remedy["change"].items():
            if isinstance(new, dict):
                ((how, by),) = new.items()
                assert how in RELATIVE
                assert by > 0
                assert kinds[name] in ("integer", "number")


@pytest.mark.parametrize("remedy", each(CHANGES))
def test_a_remedy_is_not_applied_where_it_already_holds(remedy):
    """Where a column must have a value, the change leads away from it."""
    for name in remedy["change"].keys() & remedy.get("when", {}).keys():
        for value in any_of(remedy["when"][name]):
            alone = remedy | {"change": {name: remedy["change"][name]}}
            assert Remedy.model_validate(alone).changes({name: value})


@pytest.mark.parametrize("remedy", each(ADVICE))
def test_a_bottleneck_is_one_that_the_families_can_have(remedy):
    possible = {family: bottlenecks_of(family) for family in remedy["families"]}
    assert set(remedy["bottlenecks"]) <= set().union(*possible.values())
    for family, names in possible.items():
        assert names & set(remedy["bottlenecks"]), family


@pytest.mark.parametrize("family", FAMILIES)
def test_every_bottleneck_of_a_family_has_a_remedy(family):
    remedied = {name for one in ADVICE if family in one["families"] for name in one["bottlenecks"]}
    assert bottlenecks_of(family) <= remedied


@pytest.mark.parametrize("wanted", WANTED)
def test_the_remedy_is_there(wanted):
    asked = WANTED[wanted]
    found = [
        remedy
        for remedy in ADVICE
        if asked.get("name", "") in remedy["name"]
        and asked.get("change", {}).items() <= remedy.get("change", {}).items()
    ]
    assert found


def test_every_report_gives_some():
    assert {source["source_id"] for remedy in ADVICE for source in remedy["sources"]} == set(reports())


@pytest.mark.parametrize("remedy", each(ADVICE))
def test_a_source_is_a_line_with_some_of_its_characters(remedy):
    for source in remedy["sources"]:
        assert source.keys() == {"source_id", "line", "printed"}
        assert isinstance(source["line"], int)
        assert isinstance(source["printed"], str)
        assert 1 <= len(source["printed"].split()) <= 3


@pytest.fixture(scope="module")
def lines_of(reports_dir):
    @cache
    def lines_of(source_id):
        return (reports_dir / f"{source_id}.txt").read_text(encoding="utf-8").split("\n")

    return lines_of


@pytest.mark.parametrize("remedy", each(ADVICE))
def test_the_cited_lines_have_what_is_quoted_from_them(remedy, lines_of):
    for source in remedy["sources"]:
        lines = lines_of(source["source_id"])
        assert 1 <= source["line"] <= len(lines), source
        assert source["printed"] in lines[source["line"] - 1], source


@pytest.mark.parametrize("remedy", each(ADVICE))
def test_every_figure_that_a_remedy_tells_stands_on_a_cited_line(remedy, lines_of):
    cited = " ".join(lines_of(one["source_id"])[one["line"] - 1] for one in remedy["sources"])
    figures = re.findall(r"\d[\d.,]*\d", remedy["says"])
    assert [figure for figure in figures if figure not in cited] == []
