"""Configurations as columns: a million of them cost a few arrays, not a million objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from twin.core.configuration import Configuration

Codes = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Texts = npt.NDArray[np.object_]

# what a missing text is called where texts are labels
ABSENT = "None"
# from here on it pays to have them counted by pandas, whose import takes longer than counting a few
_MANY = 200


class Columns:
    """Values by flat column name; a column that nobody has is missing everywhere."""

    def __init__(self, size: int, values: Callable[[str], Sequence[Any] | npt.NDArray[Any] | None]) -> None:
        self.size = size
        self._read = values
        self._raw: dict[str, Sequence[Any] | npt.NDArray[Any] | None] = {}
        self._numbers: dict[str, Numbers] = {}
        self._labels: dict[tuple[str, ...], tuple[list[str], Codes]] = {}

    @classmethod
    def of(cls, configurations: Sequence[Configuration]) -> Columns:
        return cls.of_rows([one.flat() for one in configurations])

    @classmethod
    def of_rows(cls, rows: Sequence[Mapping[str, Any]]) -> Columns:
        """Flat configurations that were checked before."""
        return cls(len(rows), lambda name: [row.get(name) for row in rows])

    @classmethod
    def from_mapping(cls, size: int, values: Mapping[str, Sequence[Any] | npt.NDArray[Any]]) -> Columns:
        return cls(size, values.get)

    def _column(self, name: str) -> Sequence[Any] | npt.NDArray[Any] | None:
        if name not in self._raw:
            self._raw[name] = self._read(name)
        return self._raw[name]

    def number(self, name: str, absent: float = np.nan) -> Numbers:
        """A column as numbers, flags as 0 and 1; what a configuration does not tell is `absent`."""
        if name not in self._numbers:
            values = self._column(name)
            self._numbers[name] = np.full(self.size, np.nan) if values is None else _as_numbers(values)
        numbers = self._numbers[name]
        return numbers if np.isnan(absent) else np.where(np.isnan(numbers), absent, numbers)

    def flag(self, name: str) -> Flags:
        return self.number(name) > 0

    def is_(self, name: str, *values: str) -> Flags:
        """Where a column has one of these values."""
        labels, codes = self.labels(name)
        found: Flags = np.array([label in values for label in labels], dtype=bool)[codes]
        return found

    def texts(self, *names: str) -> Texts:
        """The label of each configuration: the values of some columns, joined by a slash."""
        labels, codes = self.labels(*names)
        return np.array(labels, dtype=object)[codes]

    def labels(self, *names: str) -> tuple[list[str], Codes]:
        """The distinct values of some columns, joined by a slash, and which one each configuration has."""
        if names not in self._labels:
            self._labels[names] = self._found_labels(names)
        return self._labels[names]

    def _found_labels(self, names: tuple[str, ...]) -> tuple[list[str], Codes]:
        if len(names) == 1:
            values = self._column(names[0])
            return _coded([ABSENT] * self.size if values is None else values)
        (some, some_codes), (last, last_codes) = self.labels(*names[:-1]), self.labels(names[-1])
        distinct, codes = np.unique(some_codes * max(len(last), 1) + last_codes, return_inverse=True)
        return [f"{some[at // len(last)]}/{last[at % len(last)]}" for at in distinct], codes

    def only(self, rows: Codes) -> Columns:
        """Some of the configurations, in this order, one of them perhaps several times."""
        picked = Columns(len(rows), lambda name: _picked(self._column(name), rows))
        # what has been found out about the whole need not be found out again
        picked._numbers = {name: values[rows] for name, values in self._numbers.items()}
        picked._labels = {names: (labels, codes[rows]) for names, (labels, codes) in self._labels.items()}
        return picked

    def without(self, name: str) -> Columns:
        """As if nobody had told this column."""
        left = Columns(self.size, lambda other: None if other == name else self._column(other))
        left._numbers = {other: values for other, values in self._numbers.items() if other != name}
        left._labels = {names: found for names, found in self._labels.items() if name not in names}
        return left

    def with_(self, **given: Numbers | Texts) -> Columns:
        """With other values of some columns."""
        changed = Columns(self.size, lambda name: given[name] if name in given else self._column(name))
        changed._numbers = {name: values for name, values in self._numbers.items() if name not in given}
        changed._labels = {names: found for names, found in self._labels.items() if not given.keys() & names}
        return changed

    def row(self, at: int, names: Sequence[str]) -> dict[str, Any]:
        """Some columns of one configuration, as plain values."""
        return {
            name: None if (values := self._column(name)) is None else _plain(values[at]) for name in names
        }


def without_text(texts: Texts) -> Flags:
    """Where nothing is said."""
    return np.array([text is None for text in texts], dtype=bool)


def _plain(value: Any) -> Any:
    """What is not there is None, and a whole number an integer."""
    value = value.item() if isinstance(value, np.generic) else value
    if not isinstance(value, float):
        return value
    return None if np.isnan(value) else int(value) if value.is_integer() else value


def _picked(values: Sequence[Any] | npt.NDArray[Any] | None, rows: Codes) -> Any:
    if values is None or isinstance(values, np.ndarray):
        return None if values is None else values[rows]
    return [values[row] for row in rows]


def _as_numbers(values: Sequence[Any] | npt.NDArray[Any]) -> Numbers:
    if isinstance(values, np.ndarray) and values.dtype != object:
        return values.astype(np.float64)
    return np.array([np.nan if value is None else float(value) for value in values], dtype=np.float64)


def _coded(values: Sequence[Any] | npt.NDArray[Any]) -> tuple[list[str], Codes]:
    if isinstance(values, np.ndarray) and values.dtype.kind in "fiub":
        numbers, codes = np.unique(values, return_inverse=True)
        return [str(_plain(number)) for number in numbers], codes
    if len(values) > _MANY:
        import pandas as pd

        codes, found = pd.factorize(np.asarray(values, dtype=object), use_na_sentinel=False)
        labels = [str(_plain(value)) for value in found]
    else:
        places: dict[Any, int] = {}
        codes = np.fromiter((places.setdefault(one, len(places)) for one in values), np.int64, len(values))
        labels = [str(_plain(value)) for value in places]
    # values that read alike are alike: 1 and "1", None and its name
    distinct = {label: at for at, label in enumerate(dict.fromkeys(labels))}
    if len(distinct) == len(labels):
        return labels, codes
    return list(distinct), np.array([distinct[label] for label in labels], dtype=np.int64)[codes]
