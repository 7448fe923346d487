"""A batch on Spark beside a plain loop over its rows and beside MLflow's own user-defined function; and one
request at a time over REST. Prints JSON."""

from __future__ import annotations

import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import numpy as np
import pandas as pd

from twin.app.describing import flat_example
from twin.app.predicting import answer_file
from twin.app.predictors import asked
from twin.core.configuration import Configuration
from twin.core.prediction import THROUGHPUT
from twin.core.tables import PREDICTIONS

SMALL, LARGE = 100_000, 400_000
LOOP_ROWS = 300
UDF_ROWS = 20_000
SHARES = {"message_flow": 0.4, "rules_hub": 0.15, "fan_out": 0.2, "loopback": 0.15, "topic_publish": 0.1}


def many_requests(count):
    """Different requests of all systems, the same ones every time."""
    chance = np.random.default_rng(11)
    frames = []
    for family, share in SHARES.items():
        rows = int(count * share)
        frame = pd.DataFrame([flat_example(family)]).loc[np.zeros(rows, int)].reset_index(drop=True)
        frame["message_bytes"] = chance.integers(100, 20_000 if family == "message_flow" else 2_000, rows)
        frame["cpus"] = chance.integers(1, 9, rows)
        if family == "message_flow":
            frame["execution_groups"] = chance.integers(1, 9, rows)
        elif family == "rules_hub":
            frame["queue_managers"] = chance.integers(1, 9, rows)
        elif family == "fan_out":
            frame["subscribers"] = chance.integers(1, 200, rows)
        frames.append(frame)
    mixed = pd.concat(frames).sample(frac=1, random_state=3)
    mixed.insert(0, "request_id", [f"r{number}" for number in range(len(mixed))])
    return mixed.reset_index(drop=True)


def test_a_batch_beside_a_loop_and_beside_spark_udf(trained, spark, tmp_path):
    who = asked(trained, "hybrid", THROUGHPUT)
    seconds = {}
    for count in (SMALL, LARGE):
        path = tmp_path / f"{count}.csv"
        many_requests(count).to_csv(path, index=False)
        started = time.perf_counter()
        answered = answer_file(path, None, trained, lambda: who)
        seconds[count] = time.perf_counter() - started
        assert answered.answered + answered.excused == count
    steady = (LARGE - SMALL) / (seconds[LARGE] - seconds[SMALL])

    some = many_requests(LOOP_ROWS)
    started = time.perf_counter()
    for row in some.drop(columns="request_id").to_dict("records"):
        known = {name: value for name, value in row.items() if not pd.isna(value)}
        who.by.predict([Configuration.from_flat(known)])
    loop = LOOP_ROWS / (time.perf_counter() - started)

    udf = _spark_udf_rate(trained, spark)
    told = {
        "requests_per_s_steady_whole_command": round(steady),
        "seconds_of_100k_and_400k": [round(one, 1) for one in seconds.values()],
        "requests_per_s_plain_loop": round(loop),
        "requests_per_s_spark_udf": round(udf),
        "times_the_loop": round(steady / loop, 1),
        "times_spark_udf": round(steady / udf, 1),
    }
    print(json.dumps(told))


def _spark_udf_rate(settings, spark):
    import mlflow
    from pyspark.sql import functions as f

    from training.registry import MODEL, Registry

    Registry(settings)
    udf = mlflow.pyfunc.spark_udf(
        spark, f"models:/{MODEL}@champion", env_manager="local",
        result_type=", ".join(f"{field.name} {_SPARK[field.kind]}" for field in PREDICTIONS.fields),
    )  # fmt: skip
    requests = many_requests(UDF_ROWS)
    # the signature has its numbers as doubles
    whole = requests.select_dtypes("integer").columns
    requests = requests.astype(dict.fromkeys(whole, "float64")).astype(object)
    frame = spark.createDataFrame(requests.where(requests.notna(), None)).repartition(2).persist()
    answers = frame.select(udf(f.struct(*frame.columns)).alias("answer"))
    seconds = []
    # the first time loads the model
    for _ in range(2):
        started = time.perf_counter()
        answers.write.format("noop").mode("overwrite").save()
        seconds.append(time.perf_counter() - started)
    return UDF_ROWS / seconds[-1]


_SPARK = {"text": "string", "integer": "long", "number": "double", "flag": "boolean"}


def test_one_request_at_a_time_over_rest(trained):
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    environment = os.environ | {
        "MLFLOW_TRACKING_URI": trained.tracking_uri,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    command = ["models", "serve", "-m", "models:/throughput@champion", "--env-manager", "local"]
    server = subprocess.Popen(
        [sys.executable, "-m", "mlflow", *command, "-h", "127.0.0.1", "-p", str(port)],
        env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    url = f"http://127.0.0.1:{port}"
    body = {"dataframe_records": [flat_example("message_flow")]}
    try:
        for _ in range(120):
            try:
                httpx.get(f"{url}/ping")
                break
            except httpx.TransportError:
                time.sleep(0.5)
        with httpx.Client() as client:
            times = []
            for _ in range(200):
                started = time.perf_counter()
                client.post(f"{url}/invocations", json=body).raise_for_status()
                times.append(time.perf_counter() - started)

        def ask(_):
            return httpx.post(f"{url}/invocations", json=body, timeout=120).status_code

        with ThreadPoolExecutor(100) as clients:
            started = time.perf_counter()
            codes = list(clients.map(ask, range(500)))
            together = len(codes) / (time.perf_counter() - started)
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(30)
    told = {
        "median_ms_alone": round(statistics.median(times[20:]) * 1000, 1),
        "requests_per_s_of_100_clients": round(together, 1),
        "errors_of_100_clients": sum(code != 200 for code in codes),
        "times_one_client": round(together * statistics.median(times[20:]), 2),
    }
    print(json.dumps(told))
