"""Records with values that do not fit the output's columns, and what is wrong with each. Runs on executors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from clickjoin.kernel.typed_columns.by_line import TooDeep, decoded, json_text, value_at
from clickjoin.kernel.typed_columns.columns import typed

if TYPE_CHECKING:
    from clickjoin.model.typed_column import TypedColumn

REASON = "wrong-value"
_SHOWN = 60


def wrong_values(texts: Any, columns: Sequence[TypedColumn]) -> dict[int, tuple[str, str]]:
    """Reason and detail of the records (an array of JSON text) that do not fit, by number; the first column counts."""
    misfits = typed(texts, columns).misfits
    found: dict[int, tuple[str, str]] = {}
    for column in columns:
        for row in np.flatnonzero(misfits[column.name]).tolist():
            if row not in found:
                found[row] = REASON, _detail(texts[row].as_py(), column)
    return found


def _detail(text: str, column: TypedColumn) -> str:
    try:
        value = json_text(value_at(decoded(text), column.path))
    except (ValueError, TooDeep, RecursionError):
        value = "a value that cannot be read"
    shown = value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…"
    why = f"{column.source} is {shown}, which does not fit {column.type}"
    return f"column {column.name}: {why}; fix the record, or the type"
