"""Simulated messages per second of CPU time, with the response time of every message kept: ours beside SimPy,
Ciw and an event loop written for this one network, all in one run."""

import json
import time
from collections.abc import Callable

import ciw
import numba
import numpy as np
import simpy

from twin.queueing.network import Network, Station, cpu, delay, serial
from twin.simulation.compiling import Compiled
from twin.simulation.engine import why_stopped
from twin.simulation.heaps import pop, push
from twin.simulation.model import Discipline, JobClass, Model, Place, visit
from twin.simulation.playing import model_of

# a closed network: customers between four processors and a disk
_CUSTOMERS, _SERVERS, _WORK, _WRITE = 20, 4, 0.010, 0.002
_ROUNDS = 5


def _messages_per_cpu_s(messages: int, work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return messages / (time.process_time() - start)


def _ours(model: Model, messages: int) -> tuple[float, float]:
    """Its speed, and the mean response time that it finds."""
    random = np.random.default_rng(1)
    warm = Compiled(model, 100, random)
    why_stopped(warm.plan, warm.state, random, 100, np.inf)  # compiled before the clock starts
    compiled = Compiled(model, messages, random)
    rate = _messages_per_cpu_s(
        messages, lambda: why_stopped(compiled.plan, compiled.state, random, messages, np.inf)
    )
    return rate, float(compiled.state.response.mean())


def _in_simpy(messages: int) -> tuple[float, float]:
    random = np.random.default_rng(1)
    world = simpy.Environment()
    processors, disk = simpy.Resource(world, _SERVERS), simpy.Resource(world, 1)
    responses: list[float] = []
    enough = world.event()

    def customer():  # type: ignore[no-untyped-def]
        while True:
            began = world.now
            with processors.request() as turn:
                yield turn
                yield world.timeout(_WORK * random.standard_exponential())
            with disk.request() as turn:
                yield turn
                yield world.timeout(_WRITE * random.standard_exponential())
            responses.append(world.now - began)
            if len(responses) == messages:
                enough.succeed()

    for _ in range(_CUSTOMERS):
        world.process(customer())
    rate = _messages_per_cpu_s(messages, lambda: world.run(enough))
    return rate, float(np.mean(responses))


def _in_ciw(messages: int) -> tuple[float, float]:
    circle = ciw.create_network(
        arrival_distributions=[ciw.dists.Sequential([1e-9] * _CUSTOMERS + [float("inf")]), None],
        service_distributions=[ciw.dists.Exponential(1 / _WORK), ciw.dists.Exponential(1 / _WRITE)],
        routing=[[0.0, 1.0], [1.0, 0.0]],
        number_of_servers=[_SERVERS, 1],
    )
    ciw.seed(1)
    simulation = ciw.Simulation(circle)
    # its clock is the limit, not its messages: about so many in this time
    seconds = messages * _WORK / _SERVERS
    start = time.process_time()
    simulation.simulate_until_max_time(seconds)
    spent = time.process_time() - start
    done = sum(one.node == 2 for one in simulation.get_all_records())
    # Little's law
    return done / spent, _CUSTOMERS * seconds / done


@numba.njit
def _loop_for_this_network(random, customers, servers, work, write, responses):  # type: ignore[no-untyped-def]
    """One heap of events; the two queues are rings. Nothing but this network can be played with it."""
    ends, jobs = np.empty(customers), np.empty(customers, np.int64)
    began, on_disk = np.zeros(customers), np.zeros(customers, np.bool_)
    for_cpu, for_disk = np.empty(customers, np.int64), np.empty(customers, np.int64)
    cpu_first = cpu_waiting = disk_first = disk_waiting = events = busy = done = 0
    writing = False
    for job in range(customers):
        if busy < servers:
            push(work * random.standard_exponential(), job, 0, events, ends, jobs)
            events += 1
            busy += 1
        else:
            for_cpu[cpu_waiting] = job
            cpu_waiting += 1
    while done < len(responses):
        now = ends[0]
        job = pop(0, events, ends, jobs)
        events -= 1
        if on_disk[job]:
            on_disk[job] = False
            responses[done] = now - began[job]
            began[job] = now
            done += 1
            if disk_waiting:
                other = for_disk[disk_first]
                disk_first = (disk_first + 1) % customers
                disk_waiting -= 1
                push(now + write * random.standard_exponential(), other, 0, events, ends, jobs)
                events += 1
            else:
                writing = False
            if busy < servers:
                push(now + work * random.standard_exponential(), job, 0, events, ends, jobs)
                events += 1
                busy += 1
            else:
                for_cpu[(cpu_first + cpu_waiting) % customers] = job
                cpu_waiting += 1
        else:
            on_disk[job] = True
            if cpu_waiting:
                other = for_cpu[cpu_first]
                cpu_first = (cpu_first + 1) % customers
                cpu_waiting -= 1
                push(now + work * random.standard_exponential(), other, 0, events, ends, jobs)
                events += 1
            else:
                busy -= 1
            if writing:
                for_disk[(disk_first + disk_waiting) % customers] = job
                disk_waiting += 1
            else:
                writing = True
                push(now + write * random.standard_exponential(), job, 0, events, ends, jobs)
                events += 1


def _by_hand(messages: int) -> tuple[float, float]:
    random, responses = np.random.default_rng(1), np.zeros(messages)

    def played(into: np.ndarray) -> None:
        _loop_for_this_network(random, _CUSTOMERS, _SERVERS, _WORK, _WRITE, into)

    played(responses[:10])
    rate = _messages_per_cpu_s(messages, lambda: played(responses))
    return rate, float(responses.mean())


def test_beside_other_simulators() -> None:
    """In turn, several times over: what else the machine does falls on all of them alike."""
    in_turn = Network([Station("cpu", "serial", _WORK, servers=_SERVERS), serial("disk", _WRITE)], _CUSTOMERS)
    shared = Network([cpu(_WORK, _SERVERS), serial("disk", _WRITE)], _CUSTOMERS)
    players = {
        "ours": lambda: _ours(model_of(in_turn), 2_000_000),
        "ours, processors shared": lambda: _ours(model_of(shared), 2_000_000),
        "by hand for this network": lambda: _by_hand(2_000_000),
        "simpy": lambda: _in_simpy(20_000),
        "ciw": lambda: _in_ciw(10_000),
    }
    rounds = [{name: play() for name, play in players.items()} for _ in range(_ROUNDS)]
    for one in rounds:
        np.testing.assert_allclose([response for _, response in one.values()], one["ours"][1], rtol=0.05)
    rates = {name: float(np.median([one[name][0] for one in rounds])) for name in players}
    print(
        json.dumps(
            {
                "closed_4_cpus_and_disk_messages_per_cpu_s": {
                    name: round(rate) for name, rate in rates.items()
                },
                "ours_over": {
                    name: round(float(np.median([one["ours"][0] / one[name][0] for one in rounds])), 2)
                    for name in players
                    if name != "ours"
                },
            },
            indent=1,
        )
    )


def _grown(stations: int = 2, classes: int = 1, customers: int = 20) -> Model:
    """As many visits per message whatever the number of stations: two, to any of them."""
    places = [Place(f"station {k}", Discipline.IN_TURN, 4) for k in range(stations)]
    return Model(
        places,
        [
            JobClass(
                f"class {c}",
                [visit(places[c % stations].name, 0.01), visit(places[(c + 1) % stations].name, 0.002)],
                population=customers // classes + (c < customers % classes),
            )
            for c in range(classes)
        ],
    )


def test_growth_with_stations_classes_and_population() -> None:
    base = _ours(_grown(), 500_000)[0]
    table = {
        "stations": {
            n: round(_ours(_grown(stations=n, classes=n, customers=10 * n), 500_000)[0] / base, 2)
            for n in (2, 8, 32, 128, 512)
        },
        "classes": {
            n: round(_ours(_grown(classes=n, customers=1024), 500_000)[0] / base, 2)
            for n in (1, 4, 16, 64, 256)
        },
        "customers": {
            n: round(_ours(_grown(customers=n), 500_000)[0] / base, 2)
            for n in (20, 200, 2_000, 20_000, 200_000)
        },
        "customers that think": {
            n: round(
                _ours(model_of(Network([cpu(0.01, 4), delay("think", 0.0025 * n)], n)), 500_000)[0] / base, 2
            )
            for n in (20, 200, 2_000, 20_000, 200_000)
        },
    }
    print(json.dumps({"speed_relative_to_two_stations_one_class_20_customers": table}, indent=1))
