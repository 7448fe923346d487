"""Laws of the training set: no feature that tells the target, no configuration that two groups share.

Like the laws of figures they are queries that return what breaks them; here that is a column or a workload.
"""

from __future__ import annotations

from expectations.laws import Law
from twin.core.tables import FLOW_FIELDS, HARDWARE_FIELDS, TARGETS

# A feature that moves with the target as closely as this tells it. The closest honest one, subscribers
# against the rate of a fan-out, stays below.
TELLS = 0.995
_FEWEST_ROWS = 20

_NUMBERS = tuple(
    field.name for field in (*HARDWARE_FIELDS, *FLOW_FIELDS) if field.kind in ("integer", "number")
)
_PAIRS = tuple((feature, target) for feature in _NUMBERS for target in TARGETS)


def _logarithm(column: str) -> str:
    return f"CASE WHEN {column} > 0 THEN ln({column}) END"


_CORRELATIONS = ", ".join(
    f"'{feature}', '{target}', corr({_logarithm(feature)}, {_logarithm(target)}), "
    f"count({_logarithm(feature)} + {_logarithm(target)})"
    for feature, target in _PAIRS
)

NO_TARGET_IN_A_FEATURE = Law(
    "no_target_in_a_feature",
    "error",
    "No feature of a report moves with a target so closely that it must have been made from it",
    f"""
    WITH told AS (
      SELECT source_id, stack({len(_PAIRS)}, {_CORRELATIONS}) AS (feature, target, correlation, pairs)
      FROM {{batch}} GROUP BY source_id
    )
    SELECT * FROM told WHERE abs(correlation) >= {TELLS} AND pairs >= {_FEWEST_ROWS}
    """,
)

NO_GROUP_SPLIT = Law(
    "no_group_split",
    "error",
    "A workload on a platform belongs to one group: else it would be learned from while it is held out",
    """
    SELECT platform_id, workload_id, count(DISTINCT exam_group) AS groups FROM {batch}
    GROUP BY platform_id, workload_id HAVING count(DISTINCT exam_group) > 1
    """,
)

TRAINING_LAWS = (NO_TARGET_IN_A_FEATURE, NO_GROUP_SPLIT)
