import hashlib
from collections import Counter

import pandas as pd
import pytest

from training import splits
from training.dataset import Data
from twin.app.describing import flat_example
from twin.calibration.observations import Observation
from twin.core.configuration import Configuration

EXAMPLE = flat_example("message_flow")
# source, group, column of a second view, population, deliveries, rate
ROWS = (
    ("s", "A", None, 1, 1, 100.0),
    ("s", "A", None, 4, 1, 300.0),
    ("s", "A", None, 4, 1, 400.0),
    ("s", "A", None, 2, 1, 900.0),
    ("s", "B", "small", 1, 1, 50.0),
    ("s", "B", "large", 1, 10, 20.0),
    ("s", "B", "large", 1, 1, None),
    ("t", "A", "small", 1, 1, 70.0),
    ("t", "C", None, 1, 1, 80.0),
)


def configuration(at):
    return Configuration.from_flat(EXAMPLE | {"message_bytes": 1000 + at})


IDS = tuple(configuration(at).configuration_id for at in range(len(ROWS)))


def figure(at, source, group):
    metric = "throughput_msgs_per_s"
    return Observation(f"{source}:{group}:{at}", source, configuration(at), metric, 1.0 + at, group)


@pytest.fixture
def data():
    names = ["source_id", "exam_group", "exam_column", "population", "deliveries", "throughput_msgs_per_s"]
    rows = pd.DataFrame(ROWS, columns=names, index=pd.Index(IDS, name="configuration_id"))
    figures = [figure(at, source, group) for at, (source, group, *_) in enumerate(ROWS)]
    # both groups measured the first configuration; both sources the last
    figures += [figure(0, "s", "B"), figure(8, "s", "Z")]
    return Data(rows.assign(cpu_ms_per_msg=1.0), tuple(figures), 3, "print")


def names(data):
    return {one.figure_id for one in data.figures}


def by_name(folds, view=""):
    return {one.name: one for one in folds if one.view == view}


@pytest.mark.parametrize("one", IDS[:3])
def test_a_configuration_goes_to_the_fold_of_its_hash(one):
    assert splits.fold_of(one) == int.from_bytes(hashlib.sha256(one.encode()).digest(), "big") % 5


def test_every_configuration_is_asked_once(data):
    asked = Counter(one for fold in splits.configuration(data) for one in fold.asked)
    assert asked == Counter(IDS)


@pytest.mark.parametrize("protocol", splits.PROTOCOLS)
def test_what_is_asked_is_never_trained_on(data, protocol):
    for fold in splits.PROTOCOLS[protocol](data):
        left = fold.training(data)
        assert set(fold.asked).isdisjoint(left.rows.index)
        assert set(fold.asked).isdisjoint(left.configurations)


@pytest.mark.parametrize("protocol", splits.PROTOCOLS)
def test_rows_and_figures_that_are_left_are_of_the_same_configurations(data, protocol):
    for fold in splits.PROTOCOLS[protocol](data):
        left = fold.training(data)
        assert set(left.rows.index) == {one for one in IDS if one in left.configurations}


def test_a_table_is_asked_once_for_each_group_of_a_source(data):
    asked = {name: fold.asked for name, fold in by_name(splits.table(data)).items()}
    assert asked == {"s/A": IDS[:4], "s/B": IDS[4:7], "t/A": IDS[7:8], "t/C": IDS[8:]}


def test_no_figure_of_a_table_is_left(data):
    for fold in by_name(splits.table(data)).values():
        left = fold.training(data).figures
        assert fold.groups.isdisjoint((one.source_id, one.exam_group) for one in left)


def test_configurations_of_a_table_are_gone_where_another_group_measured_them_too(data):
    assert "s:B:0" not in names(by_name(splits.table(data))["s/A"].training(data))


def test_a_group_of_the_same_name_in_another_source_stays(data):
    assert "t:A:7" in names(by_name(splits.table(data))["s/A"].training(data))


def test_columns_of_tables_are_a_view_of_their_own(data):
    asked = {name: fold.asked for name, fold in by_name(splits.table(data), "column").items()}
    assert asked == {"s/large": IDS[5:7], "s/small": IDS[4:5], "t/small": IDS[7:8]}


def test_the_rest_of_the_tables_is_left_where_a_column_is_asked(data):
    left = by_name(splits.table(data), "column")["s/large"].training(data)
    assert set(left.rows.index) == {*IDS} - {*IDS[5:7]}


def test_the_anchor_has_the_highest_population_and_of_those_the_highest_rate(data):
    anchors = {fold.name: fold.kept for fold in splits.anchored(data)}
    # in B a row delivers 20 x 10 messages and another has no rate at all
    assert anchors == {"s/A": (IDS[2],), "s/B": (IDS[5],)}


def test_of_an_anchored_group_nothing_but_the_anchor_is_left(data):
    for fold in splits.anchored(data):
        left = fold.training(data).figures
        mine = [one for one in left if (one.source_id, one.exam_group) in fold.groups]
        assert tuple(one.configuration.configuration_id for one in mine) == fold.kept


def test_the_anchor_is_not_asked_for(data):
    asked = {fold.name: fold.asked for fold in splits.anchored(data)}
    assert asked == {"s/A": (IDS[0], IDS[1], IDS[3]), "s/B": (IDS[4], IDS[6])}


@pytest.mark.parametrize("source", ["s", "t"])
def test_nothing_of_a_platform_is_left(data, source):
    left = by_name(splits.platform(data))[source].training(data)
    assert source not in {one.source_id for one in left.figures}
    assert source not in set(left.rows["source_id"])


def test_the_other_platforms_are_left(data):
    assert names(by_name(splits.platform(data))["s"].training(data)) == {"t:A:7", "t:C:8"}


def test_exactly_the_configurations_of_a_hold_out_are_asked(data):
    (fold,) = splits.held_out(data, {IDS[6], IDS[1], "unknown"})
    assert fold.asked == (IDS[1], IDS[6])
    assert set(fold.training(data).rows.index) == {*IDS} - {IDS[1], IDS[6]}


def test_a_figure_of_a_group_that_is_gone_leaves_the_row_to_the_other_group(data):
    left = data.without((), {("s", "Z")})
    assert names(data) - names(left) == {"s:Z:8"}
    assert IDS[8] in left.rows.index
