"""What printed characters say: a value, a range, or that there is none."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from twin.core.measurement import Qualifier

_WORDS = {
    "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8,
    "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15,
    "fifty": 50, "hundred": 100, "one hundred": 100, "thousand": 1000, "one thousand": 1000,
}  # fmt: skip
_NUMBER = re.compile(r"[-+]?(?:\d[\d,\u00a0 ]*(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d{1,2})?")
_CLOCK = re.compile(r"(\d+):([0-5]\d)")
_PRODUCT = re.compile(r"\(?\s*\d[\d,.]*(?:\s*\*\s*\d[\d,.]*)+\s*\)?")
_RANGE = re.compile(rf"({_NUMBER.pattern})\s*(?:-|–|to|and)\s*({_NUMBER.pattern})")


@dataclass(frozen=True)
class Printed:
    """A figure as understood; `low` to `high` are the values that would have been printed like this."""

    qualifier: Qualifier
    value: float | None = None
    value_low: float | None = None
    value_high: float | None = None
    low: float | None = None
    high: float | None = None


def understand(
    printed: str,
    said: Qualifier | None = None,
    scale: float = 1,
    value: float | None = None,
    counted: bool = False,
) -> Printed:
    """`said` is the qualifier that the words around the figure give it, `value` the value of mere words;
    what was counted or set is a whole number as it stands, not a rounded one."""
    text = printed.strip()
    if text.upper() in ("N/A", "NA"):
        return Printed("not_applicable")
    if said == "text":
        return Printed("text", value=value)
    hedged = re.match(r"(?:approx\w*\.?|about|around|nearly|almost|~)\s*(.+)", text, re.IGNORECASE)
    if hedged:
        text, said = hedged.group(1), said or "approx"
    if match := _RANGE.fullmatch(text):
        first, second = sorted(_number(part) * scale for part in match.groups())
        if math.isfinite(second):
            return Printed("range", None, first, second, first, second)
    understood = value if value is not None else _value(text)
    # digits without end are no number either
    if understood is None or not math.isfinite(understood):
        return Printed("text")
    half = _half_digit(text, significant=said == "approx") * scale
    if counted and said is None and understood == round(understood):
        half = 0.0
    understood *= scale
    low, high = understood - half, understood + half
    match said:
        case "at_least":
            return Printed("at_least", understood, low=understood)
        case "at_most":
            return Printed("at_most", understood, high=understood)
    return Printed(said or "exact", understood, low=low, high=high)


def _value(text: str) -> float | None:
    if _NUMBER.fullmatch(text):
        return _number(text)
    if match := _CLOCK.fullmatch(text):
        return int(match.group(1)) * 60.0 + int(match.group(2))
    if _PRODUCT.fullmatch(text):
        return math.prod(_number(factor) for factor in text.strip("() ").split("*"))
    if text.lower() in _WORDS:
        return float(_WORDS[text.lower()])
    return None


def _number(text: str) -> float:
    return float(re.sub(r"[,\u00a0 ]", "", text))


def _half_digit(text: str, significant: bool) -> float:
    """Half a unit of the last printed digit; an approximate number ends at its last digit other than zero."""
    if not _NUMBER.fullmatch(text):
        return 0.5 if significant or _CLOCK.fullmatch(text) else 0.0
    mantissa, _, exponent = re.sub(r"[,\u00a0 ]", "", text).lower().partition("e")
    whole, _, decimals = mantissa.partition(".")
    digits = whole.lstrip("+-")
    zeros = len(digits) - len(digits.rstrip("0")) if significant and digits.strip("0") else 0
    return 0.5 * 10.0 ** (int(exponent or 0) + (-len(decimals) if decimals else zeros))
