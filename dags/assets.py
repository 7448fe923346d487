"""Every asset, once: what one DAG leaves behind and another waits for."""

from airflow.sdk import Asset

FIGURES = Asset(name="figures", uri="x-twin://lake/bronze/figures")
TRAINING_SET = Asset(name="training_set", uri="x-twin://lake/gold/training_set")
MODEL = Asset(name="throughput_model", uri="x-twin://registry/throughput")
ANSWERS = Asset(name="answers", uri="x-twin://home/answers")
