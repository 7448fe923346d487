"""The command that keeps the twin in step with a live broker."""

from __future__ import annotations

import json
import time
from typing import Annotated

import typer

from twin.app.commands.console import AsJson, err, fail, out
from twin.core.settings import Settings

_STYLES = {"diverged": "bold red", "unknown": "yellow", "learning": "cyan"}


def sync(
    broker: Annotated[
        list[str] | None,
        typer.Option(
            help="nats, rabbitmq, or name=address; several may be given. By default TWIN_SYNC_BROKERS."
        ),
    ] = None,
    periods: Annotated[
        int, typer.Option(help="How many periods to watch; 0 goes on until Ctrl-C.", min=0)
    ] = 1,
    every: Annotated[float, typer.Option(help="Seconds from one period to the next.", min=0)] = 60.0,
    probes: Annotated[int, typer.Option(help="Configurations measured in each period.", min=2, max=20)] = 3,
    policy: Annotated[
        str, typer.Option(help="Who approves a new calibration: person, or auto within stated bounds.")
    ] = "person",
    as_json: AsJson = False,
) -> None:
    """Probe a few configurations of a live broker, compare them with the champion, raise an alarm when the
    two part, and propose a new calibration."""
    from training.registry import NoChampion
    from twin.app.harnessing import BadChoice, chosen
    from twin.app.synchronising import Watch, synchronise
    from twin.harness.brokers.interface import BrokerProblem
    from twin.harness.running import Bench

    settings = Settings.from_environment()
    if policy not in ("person", "auto"):
        fail(2, f"{policy!r} is no policy: person or auto")
    wanted = broker or list(settings.sync_brokers)
    if not wanted:
        fail(2, "which broker? Give --broker, or set TWIN_SYNC_BROKERS")
    try:
        brokers = chosen(["put_get"], wanted, "quick", None).brokers
        with Bench(brokers) as bench:
            done = 0
            while True:
                started = time.monotonic()
                for name, address in brokers.items():
                    report = synchronise(settings, Watch(name, address, probes, policy), bench)  # type: ignore[arg-type]
                    if as_json:
                        print(json.dumps(report.told()), flush=True)
                    else:
                        off = "" if report.measured_pct is None else f" {report.measured_pct:+.1f}%"
                        out.print(
                            f"{report.at[:19]} {report.broker}: {report.status}{off}; {report.message}",
                            style=_STYLES.get(report.status), highlight=False, markup=False, soft_wrap=True,
                        )  # fmt: skip
                done += 1
                if done == periods:
                    return
                time.sleep(max(every - (time.monotonic() - started), 0))
    except BadChoice as error:
        fail(2, str(error))
    except (BrokerProblem, NoChampion) as error:
        fail(1, str(error))
    except KeyboardInterrupt:
        err.print("ended; what was learned so far is kept")
        raise
