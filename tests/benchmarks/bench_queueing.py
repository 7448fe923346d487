"""Multi-server mean value analysis: the compiled solver against the same algorithm in plain Python.

Both solve the same networks in the same run; a rate is solves per second of CPU time.
"""

import json
import math
import time
from collections.abc import Callable

import numpy as np

from twin.app.describing import flat_example
from twin.core.configuration import Configuration
from twin.queueing.mva import exact_mva
from twin.queueing.network import Array
from twin.systems.broker import SYSTEM
from twin.systems.model import Batch

_CONFIGURATIONS = 100_000
_CUSTOMERS = 20
_SERVERS = 4


def _networks(configurations: int, stations: int, customers: int) -> tuple[Array, Array, Array, Array, Array]:
    """A processor station with several servers, and single-server stations beside it."""
    random = np.random.default_rng(7)
    return (
        random.uniform(0.1, 1.0, (1, configurations)),
        np.full((1, configurations), float(_SERVERS)),
        random.uniform(0.1, 1.0, (stations - 1, configurations)),
        random.uniform(0.0, 1.0, configurations),
        np.full(configurations, float(customers)),
    )


def _in_plain_python(
    demand: float, servers: float, single: list[float], think: float, customers: int
) -> float:
    """What `exact_mva` does, for one network with one multi-server station."""
    states = max(1, min(math.ceil(servers), customers))
    chance = [1.0] + [0.0] * (states - 1)
    queue, alone, together, rate = 0.0, [0.0] * len(single), [0.0] * len(single), 0.0
    for n in range(1, customers + 1):
        waits = [d * (1 + q) for d, q in zip(single, alone, strict=True)]
        cycle_without = (think + sum(waits)) / n
        alone = [wait / cycle_without for wait in waits]
        waits = [d * (1 + q) for d, q in zip(single, together, strict=True)]
        idle = sum(max(servers - (j + 1), 0.0) * chance[j] for j in range(states))
        wait = demand / servers * (1 + queue + idle)
        cycle = (think + sum(waits) + wait) / n
        rate = 1 / cycle
        together = [one * rate for one in waits]
        queue = wait * rate
        for j in range(states - 1, 0, -1):
            chance[j] = rate * demand / min(j, servers) * chance[j - 1]
        chance[0] *= cycle_without * rate
    return rate


def _solves_per_cpu_s(solves: int, work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return solves / (time.process_time() - start)


def _compare(stations: int, customers: int, compiled: int, plain: int) -> dict[str, float]:
    networks = _networks(compiled, stations, customers)
    demand, servers, single, think, _ = networks
    exact_mva(*(part[..., :1] for part in networks))  # compiled before the clock starts
    # plain numbers: NumPy's own are slower to calculate with one by one
    columns = [part[:plain].tolist() for part in (demand[0], servers[0], single.T, think)]
    found: list[float] = []
    slow = _solves_per_cpu_s(
        plain,
        lambda: found.extend(_in_plain_python(*network, customers) for network in zip(*columns, strict=True)),
    )
    fast = _solves_per_cpu_s(compiled, lambda: exact_mva(*networks))
    np.testing.assert_allclose(exact_mva(*networks)[0][:plain], found, rtol=1e-9)
    return {
        "stations": stations,
        "customers": customers,
        "plain_solves_per_cpu_s": round(slow),
        "compiled_solves_per_cpu_s": round(fast),
        "ratio": round(fast / slow, 1),
    }


def test_a_system_all_at_once_against_one_by_one() -> None:
    """What a search over configurations costs: the broker's physics, without intervals."""
    base = flat_example("message_flow")
    sizes, copies = np.arange(200, 60_200, 30), range(1, 6)
    asked = [
        Configuration.from_flat(base | {"message_bytes": int(size), "execution_groups": count})
        for size in sizes
        for count in copies
    ]
    demands = SYSTEM.at_priors()
    batch, singles = Batch(asked), [Batch([one]) for one in asked[:200]]
    SYSTEM.evaluate(singles[0], demands)
    together = _solves_per_cpu_s(len(asked), lambda: SYSTEM.evaluate(batch, demands))
    alone = _solves_per_cpu_s(len(singles), lambda: [SYSTEM.evaluate(one, demands) for one in singles])
    print(
        json.dumps(
            {
                "broker_configurations": len(asked),
                "together_per_cpu_s": round(together),
                "one_by_one_per_cpu_s": round(alone),
                "ratio": round(together / alone, 1),
            }
        )
    )


def test_compiled_against_plain_python() -> None:
    table = [_compare(2, _CUSTOMERS, _CONFIGURATIONS, 5_000)]
    table += [_compare(2, customers, 20_000, 500) for customers in (5, 20, 80, 320)]
    table += [_compare(stations, _CUSTOMERS, 20_000, 500) for stations in (1, 2, 4, 8, 16)]
    print(json.dumps({"multi_server_mva": table}, indent=1))
