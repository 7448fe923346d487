"""A file of requests that came through the page, answered as `twin predict` does."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from training.batch import Asked
from twin.app.answering import Twin
from twin.app.asking import BadQuestion
from twin.app.predicting import FORMATS, answer_chunk, read_back
from twin.app.requests import CHUNK, BadRequestFile, read_chunks
from twin.core.tables import TARGETS

MOST_BYTES = 5_000_000
# what fits into one chunk needs no Spark
MOST_ROWS = CHUNK
_SHOWN = 500


def answer_upload(twin: Twin, name: str, content: bytes, predictor: str, target: str) -> dict[str, Any]:
    suffix = Path(name).suffix.lower()
    if suffix not in FORMATS:
        raise BadQuestion(("file", f"is none of {', '.join(FORMATS)}"))
    if target not in TARGETS:
        raise BadQuestion(("target", f"is none of {', '.join(TARGETS)}"))
    if predictor not in twin.predictors(target):
        raise BadQuestion(("predictor", f"is none of {', '.join(twin.predictors(target))}"))
    with tempfile.TemporaryDirectory() as folder:
        # a name of our own: what a browser sends may be a path
        file, out = Path(folder) / f"requests{suffix}", Path(folder) / "answers.csv"
        file.write_bytes(content)
        try:
            chunks = read_chunks(file, MOST_ROWS)
            first = next(chunks)
            if next(chunks, None) is not None:
                raise BadQuestion(
                    ("file", f"has more than {MOST_ROWS} rows: `twin predict` takes any number")
                )
        except BadRequestFile as error:
            # the reason begins with the name that the file has here, which is nobody's business
            raise BadQuestion(("file", str(error).removeprefix(str(file)).strip())) from error
        answered = answer_chunk(first, out, Asked(twin, (predictor,), (target,)))
        return {
            "answered": answered.answered,
            "excused": answered.excused,
            "rejected": answered.rejected,
            "answers": read_back(out)[:_SHOWN],
            "rejects": read_back(answered.rejects)[:_SHOWN] if answered.rejects else [],
            "csv": out.read_text(encoding="utf-8"),
        }
