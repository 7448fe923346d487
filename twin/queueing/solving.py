"""What a network does: at its own pace, or at an offered rate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from twin.queueing.approximation import approximate_mva
from twin.queueing.bounds import capacity
from twin.queueing.mva import exact_mva
from twin.queueing.network import Array, BadNetwork, Flags, Network, check

Places = npt.NDArray[np.int64]

# Beyond these an exact solution costs more than it tells: each multi-server station doubles the work, each
# customer adds to it
_MOST_SHARED = 4
_MOST_CUSTOMERS = 2_000
_TOLERANCE = 1e-12
_ROUNDS = 100
_HALVINGS = 60
_MOST_WAITED_FOR = 1_000


@dataclass(frozen=True)
class Solution:
    """One row per station, one column per configuration."""

    network: Network
    throughput: Array
    residence: Array
    saturated: Flags
    # how long a message from outside waits for a free customer
    admission: Array | float = 0.0

    @property
    def response(self) -> Array:
        """From coming to leaving; infinite where the offered rate is too much."""
        total: Array = self.admission + self.residence.sum(axis=0)
        return total

    @property
    def queue(self) -> Array:
        """Customers at each station, those in service included (Little's law)."""
        return self.throughput * self.residence

    @property
    def utilisation(self) -> Array:
        """Busy share of each station's servers; of a delay, the customers in it."""
        work = self.network.rows("demand") + self.network.rows("background")
        shared = np.where(self.network.queueing[:, None], self.network.rows("servers"), 1.0)
        busy: Array = self.throughput * work / shared
        return busy

    @property
    def capacity(self) -> Array:
        """The rate at which the first station never rests."""
        least: Array = capacity(self.network).min(axis=0)
        return least

    @property
    def headroom(self) -> Array:
        """How many times the present rate the busiest station could take, less one."""
        room: Array = self.capacity / self.throughput - 1
        return room

    @property
    def bottleneck(self) -> Sequence[str]:
        """The station that limits the rate, or the customers when there are too few to fill any station."""
        alone = self.network.rows("demand").sum(axis=0)
        limits = capacity(self.network)
        busiest = limits.argmin(axis=0)
        few = self.network.admitted() / alone < limits.min(axis=0)
        names = [station.name for station in self.network.stations]
        return [
            self.network.customers if too_few else names[row]
            for row, too_few in zip(busiest, few, strict=True)
        ]


def solve(network: Network) -> Solution:
    """The rate at which a fixed population circulates.

    Background work takes servers away: a station with m servers has m - x b of them left at rate x. The rate
    that leaves just the servers it needs is the only fixed point, for more rate leaves fewer servers.
    """
    check(network)
    background = network.rows("background")
    population = network.admitted()
    queueing, demand, servers = network.queueing, network.rows("demand"), network.rows("servers")
    # the exact solution goes through blocks of configurations, each as long as its largest population and as
    # wide as its most servers
    alike = np.lexsort((np.where(demand > 0, servers, 0.0).max(axis=0), population))
    free, unhindered = _closed(queueing, demand[:, alike], servers[:, alike], population[alike])
    throughput, residence = np.empty(network.size), np.empty_like(demand)
    if not background.any():
        throughput[alike], residence[:, alike] = free, unhindered
        return Solution(network, throughput, residence, np.zeros(network.size, bool))

    highest = capacity(network).min(axis=0)

    def reached(rate: Array, at: Places) -> Array:
        left = _left(servers[:, at], background[:, at], rate)
        return _closed(queueing, demand[:, at], left, population[at])[0]

    if (demand * background).any():
        throughput[alike] = _fixed_point(reached, np.minimum(highest[alike], free), alike)
        left = _left(servers[:, alike], background[:, alike], throughput[alike])
        _, residence[:, alike] = _closed(queueing, demand[:, alike], left, population[alike])
    else:
        # ceilings take servers from nobody who waits
        throughput[alike], residence[:, alike] = np.minimum(highest[alike], free), unhindered
    # where a ceiling holds, customers wait in front of it for the rest of their cycle
    slack = population / throughput - residence.sum(axis=0)
    columns = np.flatnonzero(throughput >= highest * (1 - _TOLERANCE))
    residence[capacity(network).argmin(axis=0)[columns], columns] += np.maximum(slack[columns], 0)
    return Solution(network, throughput, residence, np.zeros(network.size, bool))


def _fixed_point(reached: Callable[[Array, Places], Array], high: Array, places: Places) -> Array:
    """Where a falling function meets its argument, or `high` where it still lies above it there.

    False position with halving (Illinois) between `high` and what is reached there, which lies below the
    meeting point; SciPy's element-wise root finder needs three times as long for batches of a few hundred.
    Those that have met are left alone.
    """
    met = high.copy()
    low = np.minimum(reached(high, places), high)
    over, under = low - high, reached(low, places) - low
    before = np.zeros(len(high), dtype=int)
    open_, high = np.arange(len(met)), high.copy()
    for _ in range(_ROUNDS):
        span = under - over
        middle = np.where(span > 0, (high * under - low * over) / np.where(span > 0, span, 1), high)
        off = reached(middle, places[open_]) - middle
        met[open_] = middle
        going = ~((np.abs(off) <= _TOLERANCE * middle) | (high - low <= _TOLERANCE * high))
        if not going.any():
            break
        side = np.where(off > 0, 1, -1)
        over = np.where(side > 0, np.where(before > 0, over / 2, over), off)
        under = np.where(side < 0, np.where(before < 0, under / 2, under), off)
        low, high = np.where(side > 0, middle, low), np.where(side < 0, middle, high)
        before, open_ = side[going], open_[going]
        low, high, over, under = low[going], high[going], over[going], under[going]
    return met


def at_offered_rate(network: Network, rate: Array | float) -> Solution:
    """The same network with messages that arrive from outside at this rate, each station on its own.

    A rate that a station cannot sustain is cut to what it can; its response time is then infinite.
    """
    check(network)
    offered = np.broadcast_to(np.asarray(rate, float), network.size)
    if not (offered > 0).all():
        raise BadNetwork(f"the offered rate is {offered.min():g}")
    possible = capacity(network).min(axis=0)
    saturated = offered >= possible
    throughput = np.minimum(offered, possible)
    demand, servers, background = (network.rows(part) for part in ("demand", "servers", "background"))
    residence = demand.copy()
    grouped = [row for row, one in enumerate(network.stations) if one.kind == "log" and one.locks is None]
    for row in np.flatnonzero(network.queueing):
        left = servers[row] - offered * background[row]
        served = _group_commit_residence if row in grouped else _open_residence
        residence[row] = np.where(saturated, np.inf, served(demand[row], left, offered))
    return Solution(network, throughput, residence, saturated)


def held_at(offered: Array, closed: Solution) -> Solution:
    """Offered rates below those of a closed network: who comes waits for a free customer, and there are never
    more at a station than when all of them are under way."""
    opened = at_offered_rate(closed.network, offered)
    residence = np.minimum(opened.residence, closed.residence)
    population = closed.network.admitted()
    # as many servers as customers; among very many there is always a free one
    few = np.minimum(population, _MOST_WAITED_FOR)
    busy = few / np.maximum(closed.throughput, offered * (1 + _TOLERANCE))
    waiting = np.where(population > few, 0.0, _open_residence(busy, few, offered) - busy)
    return replace(opened, residence=residence, admission=np.maximum(waiting, 0.0))


def _group_commit_residence(force: Array, sharing: Array, rate: Array) -> Array:
    """A force takes along all who wait, up to `sharing`; who comes meanwhile waits for the next.

    While a force is under way each further waiting commit is `ratio` times as likely, where ratio^(sharing+1)
    - (1 + load) ratio + load = 0 between 0 and the minimum of that curve (a queue with bulk service).
    """
    load = np.minimum(rate * force, sharing * (1 - 1e-12))
    with np.errstate(divide="ignore", invalid="ignore"):
        low, high = np.zeros_like(load), ((1 + load) / (sharing + 1)) ** (1 / sharing)
        for _ in range(_HALVINGS):
            ratio = (low + high) / 2
            above = ratio ** (sharing + 1) - (1 + load) * ratio + load > 0
            low, high = np.where(above, ratio, low), np.where(above, high, ratio)
        # no force is under way 1 / load times as often as one that nobody waits behind
        nobody = 1 / (1 / (1 - ratio) + 1 / load)
        waiting = nobody * ratio / (1 - ratio) ** 2
    return np.where(force > 0, waiting / rate + force, 0.0)


def _open_residence(demand: Array, servers: Array, rate: Array) -> Array:
    """A birth-death queue that serves min(j, servers) customers at once; servers need not be whole."""
    load = rate * demand
    with np.errstate(divide="ignore", invalid="ignore"):
        weight, total, waiting = np.ones_like(load), np.ones_like(load), np.zeros_like(load)
        whole = np.ceil(np.maximum(servers, 0))
        for j in range(1, int(whole.max(initial=0))):
            weight = np.where(j < whole, weight * load / j, weight)
            total += np.where(j < whole, weight, 0)
            waiting += np.where(j < whole, j * weight, 0)
            # hundreds of servers: only proportions matter, and the weights would grow beyond all numbers
            scale = np.maximum(weight, 1.0)
            weight, total, waiting = weight / scale, total / scale, waiting / scale
        # from `whole` customers on each further one is `ratio` times as likely
        ratio = load / servers
        tail = weight * ratio / (1 - ratio)
        queue = (waiting + tail * (whole + ratio / (1 - ratio))) / (total + tail)
    return np.where(demand > 0, queue / rate, 0.0)


def _left(servers: Array, background: Array, rate: Array) -> Array:
    return np.maximum(servers - background * rate, 1e-9)


def _closed(queueing: Flags, demand: Array, servers: Array, population: Array) -> tuple[Array, Array]:
    """Exact where that is affordable; a station that is single-server everywhere costs least."""
    used = demand.any(axis=1)
    single = queueing & used & (servers == 1).all(axis=1)
    shared = queueing & used & ~single
    think = demand[~queueing].sum(axis=0)
    residence = demand.copy()
    if shared.sum() <= _MOST_SHARED and population.max(initial=0) <= _MOST_CUSTOMERS:
        throughput, waits = exact_mva(demand[shared], servers[shared], demand[single], think, population)
        residence[shared], residence[single] = waits[: shared.sum()], waits[shared.sum() :]
    else:
        either = shared | single
        throughput, waits = approximate_mva(demand[either], servers[either], think, population)
        residence[either] = waits
    return throughput, residence
