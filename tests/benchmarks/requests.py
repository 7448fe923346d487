"""Many different requests of all systems, the same ones every time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from twin.app.describing import flat_example

_SHARES = {"message_flow": 0.4, "rules_hub": 0.15, "fan_out": 0.2, "loopback": 0.15, "topic_publish": 0.1}


def write_requests(path: Path, count: int) -> Path:
    chance = np.random.default_rng(11)
    frames = []
    for family, share in _SHARES.items():
        rows = int(count * share)
        frame = pd.DataFrame([flat_example(family)] * 1).loc[np.zeros(rows, int)].reset_index(drop=True)
        frame["message_bytes"] = chance.integers(100, 20_000 if family == "message_flow" else 2_000, rows)
        frame["cpus"] = chance.integers(1, 9, rows)
        if family == "message_flow":
            frame["execution_groups"] = chance.integers(1, 9, rows)
            frame["persistent"] = chance.random(rows) < 0.5
        elif family == "rules_hub":
            frame["queue_managers"] = chance.integers(1, 9, rows)
        elif family == "fan_out":
            frame["subscribers"] = chance.integers(1, 200, rows)
        frames.append(frame)
    mixed = pd.concat(frames).sample(frac=1, random_state=3)
    mixed.insert(0, "request_id", [f"r{number}" for number in range(len(mixed))])
    mixed.to_csv(path, index=False) if path.suffix == ".csv" else mixed.to_parquet(path)
    return path
