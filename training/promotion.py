"""Who becomes champion: a challenger that is not worse where both can be compared."""

from __future__ import annotations

import pandas as pd

# how much larger the median error may be, relatively
TOLERATED = 0.05
# what share of the configurations that the champion answers it may leave unanswered
FORGOTTEN = 0.1
PASSED = "passed"


def verdict(
    expectations: str, champion: pd.DataFrame | None, challenger: pd.DataFrame | None
) -> tuple[bool, str]:
    """Whether to promote, and why. Frames by configuration: what was measured and what was predicted of it by
    a model that had not seen it. The same configurations are in the same folds, so rows that both tables have
    with the same measured value are compared like with like."""
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
    both = both[both["measured_before"] == both["measured_now"]]
    if both.empty:
        return False, "no row is in both table versions: the two cannot be compared"
    before, now = (
        float((both[f"value_{which}"] / both[f"measured_{which}"] - 1).abs().median() * 100)
        for which in ("before", "now")
    )
    said = f"median error {now:.2f}% against {before:.2f}% on {len(both)} rows of both table versions"
    return now <= before * (1 + TOLERATED), said
