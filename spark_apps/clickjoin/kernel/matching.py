"""Records that hold a value at a path: which rows of a batch do. Runs on executors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from clickjoin.kernel.arrays import bool_array
from clickjoin.kernel.typed_columns.by_line import Number, TooDeep, decoded, value_at
from clickjoin.kernel.types import RecordFn
from clickjoin.model.field_path import FieldPath


def keep_matching(matches: Callable[[str | None], bool]) -> RecordFn:
    """What a task does to leave only rows whose last column, a text, matches. Columns out: all others."""

    def keep(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            last = batch.num_columns - 1
            found = [matches(text) for text in batch.column(last).to_pylist()]
            rows = batch.filter(bool_array(np.array(found, np.bool_)))
            yield rows.select(list(range(last)))

    return keep


def matcher(path: FieldPath, value: str) -> Callable[[str | None], bool]:
    """Whether a record (JSON text) holds a value at a path: as text, as a number that is written so, or in an array.

    A record that cannot be followed that far down matches where its text holds the value at all.
    """

    def holds(found: Any) -> bool:
        if isinstance(found, list):
            return any(holds(item) for item in found)
        if isinstance(found, bool):
            return value == str(found).lower()
        return isinstance(found, str | Number) and str(found) == value

    def matches(text: str | None) -> bool:
        if text is None or not path:
            return text == value
        try:
            return holds(value_at(decoded(text), path))
        except (ValueError, TooDeep):
            return value in text

    return matches
