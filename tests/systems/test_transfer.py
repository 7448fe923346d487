"""Demands on another machine."""

import pytest

from twin.app.describing import flat_example
from twin.core.columns import Columns
from twin.core.configuration import Configuration
from twin.systems.transfer import transfer


def configuration(**platform):
    unrated = {"mhz": None, "specint_rate95": None, "lspr_itr": None}
    flat = flat_example("message_flow") | unrated | platform
    return Configuration.from_flat({name: value for name, value in flat.items() if value is not None})


def moved(there, here):
    found = transfer(Columns.of([configuration(**there)]), configuration(**here).platform)
    return found.cpu[0], found.doubt[0], found.excuses[0]


def test_the_same_machine_takes_the_same_time_without_doubt():
    assert moved({"machine": "A", "mhz": 900, "cpus": 8}, {"machine": "A", "mhz": 900, "cpus": 4}) == (
        1,
        0,
        None,
    )


def test_a_rating_of_the_whole_machine_counts_per_processor():
    ratio, doubt, excuse = moved(
        {"machine": "2064-1C5", "cpus": 5, "lspr_itr": 2.45},
        {"machine": "2084-304", "cpus": 4, "lspr_itr": 3.6},
    )
    # the older machine's engine does 0.54 of the newer one's work
    assert 1 / ratio == pytest.approx(0.54, abs=0.005)
    assert doubt > 0
    assert excuse is None


def test_a_makers_rating_goes_before_the_clock():
    here = {"machine": "A", "mhz": 200, "cpus": 4, "specint_rate95": 400}
    by_rating = moved({"machine": "B", "mhz": 400, "cpus": 4, "specint_rate95": 1200}, here)
    by_clock = moved({"machine": "B", "mhz": 400, "cpus": 4}, here)
    assert by_rating[0] == pytest.approx(1 / 3)
    assert by_clock[0] == pytest.approx(1 / 2)
    assert by_rating[1] < by_clock[1]


def test_another_operating_system_adds_doubt():
    here = {"machine": "A", "mhz": 200, "os": "aix"}
    assert (
        moved({"machine": "B", "mhz": 400, "os": "linux"}, here)[1]
        > moved({"machine": "B", "mhz": 400, "os": "aix"}, here)[1]
    )


def test_machines_without_a_common_rating_are_an_excuse():
    _, _, excuse = moved({"machine": "B", "mhz": 400}, {"machine": "A", "lspr_itr": 3.6})
    assert "no rating in common: give lspr_itr" in excuse


def test_a_measured_machine_without_a_rating_is_not_blamed_on_the_asked_one():
    _, _, excuse = moved({"machine": "B", "mhz": 400}, {"machine": "A"})
    assert excuse == "A, where this was measured, has no rating to compare B with"
    assert moved({"machine": "A"}, {"machine": "A"}) == (1.0, 0.0, None)


def test_a_faster_network_moves_bytes_sooner():
    found = transfer(
        Columns.of([configuration(machine="A", network_mbps=1000)]),
        configuration(machine="A", network_mbps=100).platform,
    )
    assert found.network[0] == pytest.approx(0.1)
