"""Every asset, once: what one DAG leaves behind, or somebody drops, and another DAG waits for."""

from airflow.sdk import Asset, AssetWatcher

from twin.app.inbox_trigger import InboxTrigger

WAITING_DOCUMENTS = Asset(
    name="waiting_documents",
    uri="x-twin://inbox/reports",
    watchers=[AssetWatcher(name="documents", trigger=InboxTrigger("report"))],
)
WAITING_HARNESS_FILES = Asset(
    name="waiting_harness_files",
    uri="x-twin://inbox/harness",
    watchers=[AssetWatcher(name="harness_files", trigger=InboxTrigger("harness"))],
)
WAITING_RUNS = Asset(
    name="waiting_runs",
    uri="x-twin://inbox/runs",
    watchers=[AssetWatcher(name="run_files", trigger=InboxTrigger("runs"))],
)
WAITING_REQUESTS = Asset(
    name="waiting_requests",
    uri="x-twin://inbox/requests",
    # somebody waits for the answers: what is still there after a minute is told again
    watchers=[AssetWatcher(name="requests", trigger=InboxTrigger("requests", again_s=60))],
)
FIGURES = Asset(name="figures", uri="x-twin://lake/bronze/figures")
RUNS = Asset(name="runs", uri="x-twin://lake/silver/runs")
FINDINGS = Asset(name="findings", uri="x-twin://lake/silver/findings")
TRAINING_SET = Asset(name="training_set", uri="x-twin://lake/gold/training_set")
MODEL = Asset(name="throughput_model", uri="x-twin://registry/throughput")
ANSWERS = Asset(name="answers", uri="x-twin://home/answers")
QUALITY_PAGE = Asset(name="quality_page", uri="x-twin://home/quality")
