"""Several classes of customers: exact against one class and the approximation against exact."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twin.queueing import multiclass
from twin.queueing.multiclass import solve_classes
from twin.queueing.mva import exact_mva
from twin.queueing.network import BadNetwork

demand = st.floats(0.01, 1.0)


@settings(max_examples=30, deadline=None)
@given(
    demands=st.lists(demand, min_size=3, max_size=3),
    servers=st.tuples(st.floats(0.5, 5.0), st.just(1.0), st.floats(1.0, 3.0)),
    think=st.floats(0.0, 2.0),
    split=st.tuples(st.integers(1, 5), st.integers(1, 5)),
)
def test_equal_classes_are_one_class(demands, servers, think, split):
    row = np.array(demands)
    both = solve_classes(np.stack([row, row]), np.array(servers), np.full(2, think), list(split))
    multi = [at for at, one in enumerate(servers) if one != 1]
    single = [at for at, one in enumerate(servers) if one == 1]
    alone, _ = exact_mva(
        row[multi][:, None],
        np.array(servers)[multi][:, None],
        row[single][:, None],
        np.array([think]),
        np.array([float(sum(split))]),
    )
    assert both.exact
    assert both.throughput.sum() == pytest.approx(alone[0], rel=1e-9)
    assert both.throughput[0] / both.throughput[1] == pytest.approx(split[0] / split[1], rel=1e-9)


@settings(max_examples=30, deadline=None)
@given(
    demands=st.lists(st.lists(demand, min_size=2, max_size=2), min_size=2, max_size=2),
    servers=st.floats(1.0, 4.0),
    population=st.tuples(st.integers(1, 6), st.integers(0, 6)),
)
def test_laws_hold_for_every_class(demands, servers, population):
    rows, many = np.array(demands), np.array([servers, 1.0])
    think = np.array([0.1, 0.5])
    found = solve_classes(rows, many, think, list(population))
    # Little's law: everybody is at a station or thinking
    present = found.queue.sum(axis=1) + found.throughput * think
    assert present == pytest.approx(np.array(population), rel=1e-9, abs=1e-12)
    assert np.all(found.throughput @ rows / many <= 1 + 1e-9)


def test_a_large_lattice_is_approximated(monkeypatch):
    rows, servers = np.array([[0.3, 0.2], [0.1, 0.6]]), np.array([4.0, 1.0])
    think = np.array([1.0, 2.0])
    exact = solve_classes(rows, servers, think, [12, 9])
    monkeypatch.setattr(multiclass, "_LARGEST_LATTICE", 10)
    near = solve_classes(rows, servers, think, [12, 9])
    assert (exact.exact, near.exact) == (True, False)
    assert near.throughput == pytest.approx(exact.throughput, rel=0.08)


@pytest.mark.parametrize(
    ("demands", "servers", "population"),
    [
        ([[-0.1, 0.2]], [1.0, 1.0], [1]),
        ([[float("nan"), 0.2]], [1.0, 1.0], [1]),
        ([[0.1, 0.2]], [0.0, 1.0], [1]),
        ([[0.1, 0.2]], [1.0, 1.0], [0]),
        ([[0.1, 0.2]], [1.0, 1.0], [-1]),
    ],
)
def test_nonsense_is_refused(demands, servers, population):
    with pytest.raises(BadNetwork):
        solve_classes(np.array(demands), np.array(servers), np.zeros(1), population)
