"""What runs: databases, models, services, brokers."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing

from twin.app.databases import servers
from twin.app.doctor.checkup import Check, Finding
from twin.app.journal import masked
from twin.app.platform import end_orphans, forget_state, read_state
from twin.core.settings import Settings


def airflow_database(settings: Settings) -> Iterator[Finding]:
    known = servers(settings)
    if "airflow" in known:
        yield _server("airflow database", known["airflow"])
        return
    file = settings.home / "airflow" / "airflow.db"
    if not file.exists():
        yield Finding("airflow database", "note", "none yet: `twin up` or `make run` makes it")
        return
    with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as database:
        (told,) = database.execute("PRAGMA quick_check(1)").fetchone()
    if told == "ok":
        yield Finding("airflow database", "well", str(file))
    else:
        yield Finding("airflow database", "wrong", f"{file}: {told}", "`twin restore` a backup, or delete it")


def registry(settings: Settings) -> Iterator[Finding]:
    from training.registry import NoChampion, Registry, champion_model, never_used

    if never_used(settings):
        yield Finding("registry", "note", "nothing was trained yet", "`twin train`, or `make run`")
        return
    known = Registry(settings)
    yield Finding("registry", "well", f"MLflow answers at {masked(settings.tracking_uri)}")
    if dead := known.dead_runs():
        yield Finding(
            "registry", "wrong", f"{len(dead)} runs count as going on, but their process was killed",
            "`twin doctor --fix` ends them", known.end_dead_runs,
        )  # fmt: skip
    try:
        yield Finding("champion", "well", f"version {champion_model(settings).version} loads")
    except NoChampion:
        yield Finding("champion", "note", "there is none yet", "`twin train`, or `twin models promote`")
    except Exception as error:
        told = f"it does not load: {type(error).__name__}: {str(error).splitlines()[0]}"
        yield Finding("champion", "wrong", told, "`twin models rollback`, or `twin restore` a backup")


def services(settings: Settings) -> Iterator[Finding]:
    try:
        state = read_state(settings)
    except ValueError:
        yield Finding(
            "services", "wrong", "platform.json cannot be read", "`twin doctor --fix` removes it",
            lambda: forget_state(settings),
        )  # fmt: skip
        return
    if state is None:
        yield Finding("services", "note", "the platform is not up", "`twin up`")
        yield from _ports()
    elif not state.is_up:
        yield Finding(
            "services", "wrong", "the supervisor was killed", "`twin down` ends what it left",
            lambda: end_orphans(settings),
        )  # fmt: skip
    else:
        for one in state.services:
            well = one.state in ("healthy", "waiting")
            todo = "" if well else f"see {settings.home / 'logs'}/{one.name}.log"
            told = f"{one.name} is {one.state} {one.note}".rstrip()
            yield Finding("services", "well" if well else "wrong", told, todo)


def tokens(settings: Settings) -> Iterator[Finding]:
    from twin.app.serving.places import is_loopback
    from twin.app.serving.tokens import BadTokens, kept_tokens

    if not settings.tokens_file.is_file():
        needed = not is_loopback(settings.host)
        todo = "the next start makes it up" if needed else ""
        yield Finding(
            "tokens", "note", "no file of tokens" + (" yet" if needed else ": none is needed"), todo
        )
        return
    try:
        kept_tokens(settings)
    except BadTokens as error:
        yield Finding("tokens", "wrong", str(error), "mend or delete it: the next start makes up new ones")
    else:
        yield Finding("tokens", "well", str(settings.tokens_file))


def brokers(settings: Settings) -> Iterator[Finding]:
    from twin.app.harnessing import BadChoice, chosen
    from twin.harness.brokers.interface import BrokerProblem
    from twin.harness.running import Bench

    for told in settings.sync_brokers:
        name = masked(told)
        try:
            with Bench(chosen(["put_get"], [told], "quick", None).brokers) as bench:
                (broker,) = bench.brokers.values()
                yield Finding("brokers", "well", f"{name}: {broker.product} answers")
        except (BadChoice, BrokerProblem) as error:
            todo = "start it, or mend TWIN_SYNC_BROKERS"
            yield Finding("brokers", "wrong", f"{name}: {masked(str(error))}", todo)


def _ports() -> Iterator[Finding]:
    from twin.app.services import free_port
    from twin.app.supervisor import PREFERRED_PORTS

    for name, port in PREFERRED_PORTS.items():
        if free_port(port) != port:
            yield Finding("ports", "note", f"{port} is taken: the {name} will take the next free one")


def _server(check: str, uri: str) -> Finding:
    import psycopg

    # SQLAlchemy names its driver in the scheme
    plain = f"postgresql:{uri.partition(':')[2]}"
    try:
        with psycopg.connect(plain, connect_timeout=5):
            return Finding(check, "well", masked(uri))
    except psycopg.Error as error:
        told = masked(f"{uri}: {str(error).splitlines()[0]}")
        return Finding(check, "wrong", told, "start PostgreSQL, or mend the address")


CHECKS: tuple[Check, ...] = (airflow_database, registry, services, tokens, brokers)
