"""The recovery experiment as a driver: connections through a proxy, cut and restored."""

from __future__ import annotations

from urllib.parse import urlsplit

from twin.harness.brokers.registry import Place
from twin.harness.driving import Run
from twin.harness.failures import NetworkCut
from twin.harness.proxy import proxied
from twin.harness.reconnecting import Load
from twin.harness.recovering import Course, recover


async def recovering(run: Run) -> None:
    parts = urlsplit(run.places[0].address)
    load = Load(
        clients=run.column("producers"),
        offered_msgs_per_s=run.column("offered_rate_msgs_per_s"),
        message_bytes=run.column("message_bytes"),
        consumers=run.column("consumers"),
    )
    async with proxied(parts.hostname or "127.0.0.1", parts.port or 0) as proxy:
        user = parts.netloc.rpartition("@")[0]
        at_proxy = f"{user}@127.0.0.1:{proxy.port}" if user else f"127.0.0.1:{proxy.port}"
        through = Place(run.places[0].broker, parts._replace(netloc=at_proxy).geturl())
        found = await recover(
            await through.reached(), run.broker, NetworkCut(proxy), load, Course(), run.meter
        )
    run.meter.samples[:] = found.samples
    run.figures |= {
        name: value
        for name, value in {
            "channel_drop_s": found.channel_drop_s,
            "channel_recovery_s": found.channel_recovery_s,
            "throughput_recovery_s": found.throughput_recovery_s,
            "recovered": float(None not in (found.channel_recovery_s, found.throughput_recovery_s)),
            "messages_lost": found.lost,
            "messages_repeated": found.duplicated,
        }.items()
        if value is not None
    }
