"""Who becomes champion: a challenger that is not worse where both can be compared, and that was not taught
another truth."""

from __future__ import annotations

import pandas as pd

# how much larger the median error may be, relatively
TOLERATED = 0.05
# what share of the configurations that the champion answers it may leave unanswered
FORGOTTEN = 0.1
# A source whose figures have become others is for a person to judge: so many rows make a source, so far off
# is beyond the noise of a run, such a share of them is more than corrections
FEWEST_ROWS = 5
REVISED_BY = 0.15
REVISED = 0.1
# how many times as large the median error of one source may be, and the points that do not count
WORSE = 1.5
POINT = 1.0
PASSED = "passed"


def verdict(
    expectations: str, champion: pd.DataFrame | None, challenger: pd.DataFrame | None
) -> tuple[bool, str]:
    """Whether to promote, and why. Frames by configuration: its source, what was measured and what was
    predicted of it by a model that had not seen it. The same configurations are in the same folds, so rows
    that both tables have with the same measured value are compared like with like."""
    if expectations != PASSED:
        return False, f"expectations: {expectations}"
    if challenger is None or challenger.empty:
        return False, "nothing was examined"
    if champion is None:
        return True, "the first model"
    champion, challenger = champion.dropna(subset="value"), challenger.dropna(subset="value")
    forgotten = champion.index.difference(challenger.index)
    if len(forgotten) > FORGOTTEN * len(champion):
        return False, f"it does not answer {len(forgotten)} of the {len(champion)} that the champion answers"
    both = champion.join(challenger, how="inner", lsuffix="_before", rsuffix="_now")
    for source_id, rows in both.groupby("source_id_before"):
        if len(rows) >= FEWEST_ROWS and (objection := _objection(rows)):
            return False, f"{source_id}: {objection}; look at its figures, then `twin models promote`"
    same = both[both["measured_before"] == both["measured_now"]]
    if same.empty:
        return False, "no row is in both table versions: the two cannot be compared"
    before, now = _median_error(same, "before"), _median_error(same, "now")
    said = f"median error {now:.2f}% against {before:.2f}% on {len(same)} rows of both table versions"
    return now <= before * (1 + TOLERATED), said


def _objection(rows: pd.DataFrame) -> str | None:
    """What speaks against believing what one source says now. Errors are against what was measured before: a
    challenger that was taught wrong figures agrees with those."""
    revised = (rows["measured_now"] / rows["measured_before"] - 1).abs() > REVISED_BY
    if revised.mean() > REVISED:
        return f"{int(revised.sum())} of {len(rows)} measured values have changed"
    before, now = _median_error(rows, "before"), _median_error(rows, "now")
    if now > WORSE * before + POINT:
        return f"median error {now:.2f}% against {before:.2f}%"
    return None


def _median_error(rows: pd.DataFrame, which: str) -> float:
    return float((rows[f"value_{which}"] / rows["measured_before"] - 1).abs().median() * 100)
