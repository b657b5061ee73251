"""The adapter that a pipeline's `output` stands for: typed columns, and the records that are kept whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from clickjoin.kernel.adapter import MISFITS, ArrowAdapter
from clickjoin.kernel.arrays import int64_array, number_array, text_array
from clickjoin.kernel.typed_columns.columns import typed
from clickjoin.model.outputs import RECORD, RECORDS

if TYPE_CHECKING:
    from clickjoin.model.typed_column import TypedColumn

_TEXTS = {"foreign": "payload", "primary": "primary"}
_WHOLE = {RECORDS[stream]: text for stream, text in _TEXTS.items()} | {RECORD: "payload"}


class TypedOutput(ArrowAdapter):
    """Columns of both records by path and type, nothing left out. A value that does not fit its type is null."""

    reports_misfits: ClassVar[bool] = True

    def __init__(self, columns: Sequence[TypedColumn], records: Sequence[str] = ()) -> None:
        """`records`: columns of records that are kept whole, as JSON text (foreign_record, primary_record; record)."""
        self._typed, self._records = tuple(columns), tuple(records)

    @property
    def columns(self) -> Mapping[str, str]:  # type: ignore[override]  # by instance: it is made of a configuration
        """The columns that it adds to the output, name to Spark SQL type."""
        return dict.fromkeys(self._records, "STRING") | {column.name: column.type for column in self._typed}

    def merge_table(self, joined: pa.Table) -> pa.Table:
        """Columns out: event_id, event_time, records, typed columns, and the names of those that did not fit."""
        made: dict[str, Any] = {name: joined[name] for name in ("event_id", "event_time")}
        made |= {name: joined[_WHOLE[name]] for name in self._records}
        misfits: dict[str, Any] = {}
        for stream, text in _TEXTS.items():
            columns = [column for column in self._typed if column.stream == stream]
            if columns:
                found = typed(joined[text], columns)
                made |= found.values
                misfits |= found.misfits
        return pa.table(made | {MISFITS: named(misfits, joined.num_rows)})


def named(misfits: Mapping[str, Any], count: int) -> Any:
    """For each of some rows the names of columns whose value did not fit; null where all rows fit. `misfits`: masks."""
    names = [name for name, wrong in misfits.items() if wrong.any()]
    if not names:
        return pa.nulls(count, pa.list_(pa.string()))
    wrong = np.stack([misfits[name] for name in names], axis=1)
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(wrong.sum(axis=1))])
    values = text_array(names, pa.string()).take(int64_array(np.nonzero(wrong)[1]))
    return pa.ListArray.from_arrays(number_array(ends, pa.int32()), values)
