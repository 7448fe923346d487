"""The cheapest that holds, and why others do not."""

import json
import math
import random
from functools import cache
from itertools import pairwise, product
from statistics import NormalDist

import pytest

from twin.app.answering import Twin
from twin.app.asking import BadQuestion
from twin.app.costs import BadCosts, Prices, read_costs, shipped_costs, shipped_text
from twin.app.describing import flat_example
from twin.app.examining import MOST_CONFIGURATIONS, Wanted
from twin.app.sizing import size
from twin.core.configuration import FAMILIES, Configuration
from twin.core.prediction import Excuse

CASES = 500
SOME = 60
PRICES = shipped_costs().prices
GRIDS = {
    "generic": {
        "cpus": [1, 2, 3, 4, 6, 8],
        "clients": [1, 2, 4, 8, 16, 32],
        "demand_log_ms": [0, 0.2, 0.5, 1],
        "serial_threads": [1, 2],
    },
    "rules_hub": {
        "cpus": [2, 4, 8],
        "queue_managers": [1, 2, 3, 5],
        "rules_engines": [1, 2],
        "disk_layout": ["dedicated", "striped"],
        "log_disk": ["fc_al", "cached"],
    },
    "cluster": {"cpus": [2, 4, 8], "trusted": [False, True], "log_disk": ["scsi", "cached"]},
}


@pytest.fixture(scope="module")
def twin(small_model):
    return Twin(small_model.physics, small_model)


def flat_of(family):
    flat = flat_example(family)
    flat.pop("offered_rate_msgs_per_s", None)
    return flat


def sized(twin, family="rules_hub", options=None, boxes=(1, 2, 3), prices=PRICES, most=10, **wanted):
    base = Configuration.from_flat(flat_of(family))
    return size(twin, base, Wanted(**wanted), options or GRIDS[family], boxes, prices, most)


class OneByOne:
    """Every option asked for itself, by `predict` alone."""

    def __init__(self, model):
        self._model = model
        self._predicted = cache(self._predict)

    def cheapest(self, flat, options, boxes, wanted, prices):
        costs = []
        for values in product(*options.values()):
            configuration = flat | dict(zip(options, values, strict=True))
            for number in boxes:
                if self._holds(configuration, number, wanted):
                    costs.append(number * cost_of_a_box(configuration, prices))
        return min(costs, default=None)

    def _holds(self, flat, boxes, wanted):
        if not wanted.one_box_lost:
            return self._carries(flat, wanted.target / boxes, wanted)
        if "failed_over" not in flat:
            return boxes > 1 and self._carries(flat, wanted.target / (boxes - 1), wanted)
        over = flat | {"failed_over": True, "queue_managers": 2 * flat["queue_managers"]}
        return (
            boxes % 2 == 0
            and self._carries(flat, wanted.target / boxes, wanted)
            and self._carries(over, 2 * wanted.target / boxes, wanted)
        )

    def _carries(self, flat, load, wanted):
        answer = self._predicted(tuple(sorted(flat.items())))
        if isinstance(answer, Excuse) or reached_with(answer, wanted.confidence) < load:
            return False
        loaded = self._predict(tuple((flat | {"offered_rate_msgs_per_s": load}).items()))
        return 100 * max(json.loads(loaded.utilisation).values()) <= wanted.ceiling_pct

    def _predict(self, items):
        (answer,) = self._model.predict([Configuration.from_flat(dict(items))])
        return answer


def reached_with(answer, confidence):
    """The quantile of a logarithm that is normal between the ends of the intervals, and beyond them."""
    level, inner, outer = (NormalDist().inv_cdf(one) for one in (confidence, 0.75, 0.95))
    known = [(0.0, answer.value), (inner, answer.lo50), (outer, answer.lo90)]
    if level > outer:
        return answer.value * (answer.lo90 / answer.value) ** (level / outer)
    for (before, high), (after, low) in pairwise(known):
        if level <= after:
            return high * (low / high) ** ((level - before) / (after - before))
    raise AssertionError


def cost_of_a_box(flat, prices):
    disks = flat.get("disks", 1)
    if flat.get("disk_layout") == "dedicated":
        disks = max(disks, flat.get("queue_managers", 0))
    cpu = prices.cpu + prices.licence_units_per_cpu * prices.licence_unit
    return prices.box + flat["cpus"] * cpu + disks * prices.disk.get(flat.get("log_disk"), prices.other_disk)


def random_case(seed):
    draw = random.Random(seed)
    family = draw.choice(["generic"] * 3 + ["rules_hub", "cluster"])
    fields = draw.sample(list(GRIDS[family]), k=draw.randint(1, 3 if family == "generic" else 2))
    options = {
        name: draw.sample(GRIDS[family][name], k=draw.randint(1, min(3, len(GRIDS[family][name]))))
        for name in fields
    }
    typical = {"generic": 6000, "rules_hub": 250, "cluster": 600}[family]
    wanted = Wanted(
        target=typical * draw.uniform(0.1, 3),
        confidence=draw.uniform(0.5, 0.99),
        ceiling_pct=draw.choice([100, 95, 80, 60, 30]),
        one_box_lost=draw.random() < 0.4,
    )
    prices = Prices(
        box=draw.uniform(0, 30_000),
        cpu=draw.uniform(0, 9000),
        licence_unit=draw.choice([0, 4000]),
        licence_units_per_cpu=draw.uniform(0, 2),
        disk={kind: draw.uniform(0, 8000) for kind in ("scsi", "fc_al", "cached")},
        other_disk=draw.uniform(0, 500),
    )
    return family, options, draw.sample([1, 2, 3, 4], k=draw.randint(1, 3)), wanted, prices


@pytest.mark.parametrize(
    "cases",
    [range(SOME), pytest.param(range(SOME, CASES), marks=pytest.mark.long)],
    ids=["some", "the others"],
)
def test_the_cheapest_is_that_of_a_loop_over_every_option(cases, twin, small_model):
    loop = OneByOne(small_model)
    found = 0
    for seed in cases:
        family, options, boxes, wanted, prices = random_case(seed)
        base = Configuration.from_flat(flat_of(family))
        sizing = size(twin, base, wanted, options, boxes, prices, most=1)
        cheapest = loop.cheapest(flat_of(family), options, boxes, wanted, prices)
        assert bool(sizing.accepted) == (cheapest is not None), seed
        if cheapest is not None:
            assert math.isclose(sizing.accepted[0].cost, cheapest), seed
            found += 1
    # neither all nor none of them, or nothing was compared
    assert len(cases) / 4 < found < len(cases)


def test_every_option_is_accepted_rejected_with_a_reason_or_dearer(twin):
    sizing = sized(twin, target=250, one_box_lost=True, boxes=(1, 2, 4))
    every = math.prod(len(values) for values in GRIDS["rules_hub"].values()) * 3
    assert sizing.examined == every
    assert len(sizing.accepted) == 10
    assert all(one.reason for one in sizing.rejected)
    assert {one.verdict for one in sizing.rejected} >= {"no other box", "too slow"}
    costs = [one.cost for one in sizing.accepted]
    assert costs == sorted(costs)
    # whatever is cheaper was looked at
    cheaper = sum(one.cost < costs[0] for one in sizing.rejected)
    assert cheaper > 0


def test_reasons_name_the_resource_and_the_confidence(twin):
    rejected = sized(twin, target=200, ceiling_pct=40, boxes=[1]).rejected
    assert any(one.verdict == "too busy" and "cpu is" in one.reason for one in rejected)
    rejected = sized(twin, target=220, ceiling_pct=100, confidence=0.99, boxes=[1]).rejected
    assert any(one.verdict == "not sure enough" and "at 99%" in one.reason for one in rejected)


def test_more_confidence_a_lower_ceiling_and_a_lost_box_never_make_it_cheaper(twin):
    def least(**wanted):
        return sized(twin, target=350, boxes=[1, 2, 4], **wanted).accepted[0].cost

    plain = least()
    assert least(confidence=0.99) >= plain
    assert least(ceiling_pct=50) >= plain
    assert least(one_box_lost=True) > plain


def test_growth_is_told_in_months(twin):
    sizing = sized(twin, target=150, growth_pct=5)
    for one in sizing.accepted:
        then = 150 * 1.05**one.months
        room = min(one.sure_rate / then, 80 / (one.busiest_pct * then / 150))
        assert room == pytest.approx(1)
    assert sized(twin, target=150).accepted[0].months is None


def test_what_a_single_change_buys_is_ranked_and_priced(twin, small_model):
    steps = sized(twin, target=150).steps
    gains = [one.gain_pct for one in steps if one.gain_pct is not None]
    assert gains == sorted(gains, reverse=True)
    more = next(one for one in steps if one.change == {"cpus": 8})
    here, there = (
        small_model.predict([Configuration.from_flat(flat_of("rules_hub") | change)])[0].value
        for change in ({}, {"cpus": 8})
    )
    assert more.gain_pct == pytest.approx(100 * (there / here - 1))
    assert more.extra_cost == 4 * (PRICES.cpu + PRICES.licence_unit)


def test_options_that_make_no_configuration_are_rejected_with_the_field(twin):
    sizing = sized(twin, options={"cpus": [0, 4]}, target=100, boxes=[1])
    (bad,) = [one for one in sizing.rejected if one.verdict == "not a configuration"]
    assert bad.changes == {"cpus": 0}
    assert "cpus" in bad.reason
    assert sizing.accepted


def test_what_nobody_has_measured_is_rejected_with_the_excuse(twin):
    sizing = sized(twin, options={"persistent": [False, True]}, target=100, boxes=[1])
    (excused,) = [one for one in sizing.rejected if one.verdict == "no answer"]
    assert "persistent" in excused.reason


def test_a_hub_that_has_failed_over_is_not_sized_for_another_loss(twin):
    base = Configuration.from_flat(flat_of("rules_hub") | {"failed_over": True})
    with pytest.raises(BadQuestion, match="failed_over"):
        size(twin, base, Wanted(target=100, one_box_lost=True), {"cpus": [4]}, [2], PRICES)


def test_too_many_unknown_or_empty_options_are_refused(twin):
    many = {"cpus": list(range(1, 102)), "queue_managers": list(range(1, 101))}
    assert MOST_CONFIGURATIONS < 101 * 100
    for options, field in (
        (many, "options"),
        ({"speed": [1]}, "options.speed"),
        ({"cpus": []}, "options.cpus"),
    ):
        with pytest.raises(BadQuestion) as error:
            sized(twin, options=options, target=1)
        assert error.value.problems[0][0] == field


def test_the_shipped_options_are_fields_of_their_families():
    for family, options in shipped_costs().options.items():
        flat = flat_example(family)
        for name, values in options.items():
            for value in values:
                assert name in FAMILIES[family].model_fields or name in flat or name in ("cpus", "log_disk")
                Configuration.from_flat(flat | {name: value})


def test_an_edited_cost_model_decides(twin, tmp_path):
    file = tmp_path / "costs.yaml"
    file.write_text(shipped_text().replace("cached: 4000", "cached: 1"))
    cheap = read_costs(file).prices
    before = sized(twin, target=300, options={"log_disk": ["fc_al", "cached"], "cpus": [8]})
    after = sized(twin, target=300, options={"log_disk": ["fc_al", "cached"], "cpus": [8]}, prices=cheap)
    assert before.accepted[0].changes["log_disk"] == "fc_al"
    assert after.accepted[0].changes["log_disk"] == "cached"


@pytest.mark.parametrize("text", ["box: [", "box: -1", "- 1", "box: dear"])
def test_a_bad_cost_model_is_refused_with_its_field(text, tmp_path):
    file = tmp_path / "costs.yaml"
    file.write_text(text)
    with pytest.raises(BadCosts):
        read_costs(file)
