"""Who is told when a task has failed for good."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from airflow.sdk import BaseNotifier


class FailureNotifier(BaseNotifier):
    """A line in `logs/failures.jsonl` of the home, and a message to the address in `TWIN_WEBHOOK_URL` if
    there is one. A message that cannot be delivered is told in the log and changes nothing."""

    def notify(self, context: Any) -> None:
        from twin.core.settings import Settings

        settings = Settings.from_environment()
        task = context["ti"]
        told = {
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "dag": task.dag_id,
            "run": task.run_id,
            "task": task.task_id,
            "map_index": task.map_index,
            "error": str(context.get("exception") or "the task ended without telling why"),
            "log": getattr(task, "log_url", None),
        }
        self.log.error("%(dag)s.%(task)s failed: %(error)s", told)
        path = settings.folder("logs") / "failures.jsonl"
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(told) + "\n")
        if settings.webhook:
            self._post(settings.webhook, told)

    def _post(self, address: str, told: dict[str, Any]) -> None:
        import httpx

        text = f"{told['dag']}.{told['task']} failed: {told['error']}"
        try:
            httpx.post(address, json={"text": text, **told}, timeout=10).raise_for_status()
        except httpx.HTTPError as error:
            self.log.warning("%s was not told: %s", address, error)
