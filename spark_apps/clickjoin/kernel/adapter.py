"""Adapters: what a pipeline's owner writes to filter, reshape and enrich (Photon, section 3.3.1).

An adapter works on Arrow tables of some of a batch's events; one of whole DataFrames is known, and refused by name. It
must keep `event_id` and `event_time` as they are, and give one row at most for each event: what it leaves out is kept
in table `filtered`. It may not depend on the clock or on chance, since a batch that crashed is run again.
What it gives is checked against what it got. Runs on executors, which need no clickjoin.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.kernel.arrays import equi_join, int64_array, number_array, one_array, text_array, to_numpy
from clickjoin.kernel.typed_columns.columns import typed
from clickjoin.kernel.types import arrow_type, delta_type, rows_type
from clickjoin.model.places import RECORD, RECORDS, TOUCH, TOUCH_COUNT, TOUCHES

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa
    from pyspark.sql import DataFrame

    from clickjoin.model.field_path import TypedColumn

MISFITS = "_misfits"  # ARRAY<STRING>: an output row's columns whose value did not fit its type


class Adapter:
    """Base of all adapters. `columns`: the columns that `merge` adds to the output, name to Spark SQL type."""

    columns: ClassVar[Mapping[str, str]] = {}

    def prepare(self, foreign: DataFrame) -> DataFrame:
        """Before look-up: leave rows out, or add columns for `merge` to use.

        Columns in: event_id, event_time, primary_id, primary_time, payload (the record as JSON text). The first four
        must come out again.
        """
        return foreign

    def merge(self, joined: DataFrame) -> DataFrame:
        """After look-up: make the output's own columns.

        Columns in: those that `prepare` gave, and `primary` (the primary record as JSON text). Columns out: event_id,
        event_time and all of `columns`.
        """
        raise NotImplementedError


class ArrowAdapter(Adapter):
    """Base of adapters that need no Spark: `merge_table` is called by the very task that has looked the records up.

    Several times as fast as `merge` of a whole DataFrame. It is shipped to the executors with what it imports of its
    own package; all else besides the standard library, NumPy and PyArrow has to be installed there.
    `reports_misfits`: it also gives column MISFITS, which is counted, and is not in the output.
    """

    reports_misfits: ClassVar[bool] = False

    def merge_table(self, joined: pa.Table) -> pa.Table:
        """After look-up: make the output's own columns of some of a batch's events.

        Columns in: event_id, event_time, primary_id, primary_time, payload and primary (both records as JSON text).
        Columns out: event_id, event_time and all of `columns`; events that are left out go to table `filtered`.
        """
        raise NotImplementedError


class BothRecords(ArrowAdapter):
    """Both records side by side as JSON text, nothing left out."""

    columns: ClassVar[Mapping[str, str]] = dict.fromkeys(RECORDS.values(), "STRING")

    def merge_table(self, joined: pa.Table) -> pa.Table:
        """Columns out: event_id, event_time, foreign_record, primary_record."""
        names = ["event_id", "event_time", "payload", "primary"]
        return joined.select(names).rename_columns([*names[:2], *RECORDS.values()])


def is_users(adapter: Adapter) -> bool:
    """Whether an adapter is a user's own, which may keep something between calls; ours keep nothing."""
    return type(adapter).__module__.partition(".")[0] != __name__.partition(".")[0]


def needs_spark(adapter: Adapter) -> bool:
    """Whether an adapter's answer can only be had of whole DataFrames: its own methods of those are the last word."""
    kind = type(adapter)
    if not isinstance(adapter, ArrowAdapter) or kind.prepare is not Adapter.prepare:
        return True
    merge, merge_table = (
        next(at for at, base in enumerate(kind.__mro__) if name in vars(base)) for name in ("merge", "merge_table")
    )
    return merge < merge_table


_TIME = pa.timestamp("us", "UTC")
GIVEN = pa.schema([
    ("event_id", pa.string()), ("event_time", _TIME), ("primary_id", pa.string()), ("primary_time", _TIME),
    ("payload", pa.string()), ("primary", pa.string()),
])  # fmt: skip


_TEXTS_ONCE = pa.dictionary(pa.int32(), pa.string())  # a record is a touch of many events; Spark has plain texts there
_A_TOUCH = [*((name, arrow_type(delta_type(kind))) for name, kind in TOUCH.items()), ("payload", _TEXTS_ONCE)]
ALL_TOUCHES = pa.schema([(TOUCHES, pa.list_(pa.struct(_A_TOUCH))), (TOUCH_COUNT, pa.int64())])  # with `pick: all`


class AdapterFault(Exception):
    """An adapter has given what it may not give."""


def made_of(columns: Mapping[str, str], *, misfits: bool = False) -> pa.Schema:
    """What an adapter with these columns (name to Spark SQL type) has to give; `misfits`: column MISFITS too."""
    own = [(name, arrow_type(delta_type(kind))) for name, kind in columns.items()]
    more = [(MISFITS, pa.list_(pa.string()))] if misfits else []
    return pa.schema([GIVEN.field("event_id"), GIVEN.field("event_time"), *own, *more])


def misfits_of(made: pa.Table) -> dict[str, int]:
    """How many values did not fit, by column. Columns in: MISFITS, or without it none is counted."""
    if MISFITS not in made.column_names or made[MISFITS].null_count == made.num_rows:
        return {}
    return {row["values"]: row["counts"] for row in pc.value_counts(pc.list_flatten(made[MISFITS])).to_pylist()}


def merged(adapter: ArrowAdapter, given: pa.Table, made: pa.Schema) -> tuple[np.ndarray[Any, Any], pa.Table]:
    """What an adapter makes of some rows, and which row each of its rows was made of.

    Columns in: those of GIVEN; out: those of `made`. Errors: AdapterFault where it raises, or gives two rows of one
    event, an event that was not there, or other columns.
    """
    try:
        rows = adapter.merge_table(given)
        missing = [name for name in made.names if name not in rows.column_names]
        rows = rows if missing else rows.select(made.names).cast(made)
    except Exception as error:
        raise AdapterFault(f"raised {type(error).__name__}: {str(error)[:500]}") from error
    if missing:
        raise AdapterFault(f"dropped {', '.join(missing)}")
    same = rows.num_rows == given.num_rows and all(rows[name].equals(given[name]) for name in made.names[:2])
    return (np.arange(rows.num_rows) if same else _origins(rows, given)), rows


def _origins(rows: pa.Table, given: pa.Table) -> np.ndarray[Any, Any]:
    if rows["event_id"].null_count or rows["event_time"].null_count:
        raise AdapterFault("gave an event without id or time")
    one, other = equi_join(rows["event_id"], given["event_id"])
    mine, theirs = (to_numpy(table["event_time"].cast(pa.int64())) for table in (rows, given))
    fits = mine[one] == theirs[other]
    one, other = one[fits], other[fits]
    _refuse(rows, np.bincount(one, minlength=rows.num_rows) == 0, "gave an event that was not there:")
    _refuse(given, np.bincount(other, minlength=given.num_rows) > 1, "made two rows of one event, such as")
    origins: np.ndarray[Any, Any] = other[np.argsort(one)]
    return origins


def _refuse(rows: pa.Table, wrong: np.ndarray[Any, Any], text: str) -> None:
    if wrong.any():
        raise AdapterFault(f"{text} {rows['event_id'][int(np.argmax(wrong))].as_py()}")


_TEXTS = {"foreign": "payload", "primary": "primary"}
_WHOLE = {RECORDS[stream]: text for stream, text in _TEXTS.items()} | {RECORD: "payload"}


class TypedOutput(ArrowAdapter):
    """Columns of both records by path and type, nothing left out. A value that does not fit its type is null."""

    reports_misfits: ClassVar[bool] = True

    def __init__(self, columns: Sequence[TypedColumn], records: Sequence[str] = (), *, touches: bool = False) -> None:
        """`records`: columns of records that are kept whole, as JSON text (foreign_record, primary_record; record).

        `touches`: of all primary events of a window (ALL_TOUCHES) the same as of the one that is joined.
        """
        self._typed, self._records = tuple(columns), tuple(records)
        self._of_touch = [column for column in columns if column.stream == "primary"] if touches else None

    @property
    def columns(self) -> Mapping[str, str]:  # type: ignore[override]  # by instance: it is made of a configuration
        """The columns that it adds to the output, name to Spark SQL type."""
        own = dict.fromkeys(self._records, "STRING") | {column.name: column.type for column in self._typed}
        if self._of_touch is None:
            return own
        each = (
            TOUCH | {name: own[name] for name in self._whole_touch} | {each.name: each.type for each in self._of_touch}
        )
        return own | {TOUCHES: rows_type(each), TOUCH_COUNT: "BIGINT"}

    @property
    def _whole_touch(self) -> tuple[str, ...]:
        return tuple(name for name in self._records if name == RECORDS["primary"])

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
        if self._of_touch is not None:
            made[TOUCHES], misfits[TOUCHES] = self._touches(joined[TOUCHES])
            made[TOUCH_COUNT] = joined[TOUCH_COUNT]
        return pa.table(made | {MISFITS: named(misfits, joined.num_rows)})

    def _touches(self, lists: Any) -> tuple[Any, np.ndarray[Any, Any]]:
        """Column `touches` of some rows, and which of them hold a value that does not fit. Each record is read once."""
        done = [self._touches_of(part) for part in lists.chunks]
        wrong = np.concatenate([np.zeros(0, np.bool_), *(wrong for _, wrong in done)])
        return pa.chunked_array([made for made, _ in done], self._kind), wrong

    @property
    def _kind(self) -> pa.DataType:
        return arrow_type(delta_type(self.columns[TOUCHES]))

    def _touches_of(self, lists: Any) -> tuple[Any, np.ndarray[Any, Any]]:
        flat, fields = lists.flatten(), list(self._kind.value_type)
        texts = flat.field("payload")
        texts = texts if pa.types.is_dictionary(texts.type) else texts.dictionary_encode()
        found = typed(texts.dictionary, self._of_touch or ())
        values = [flat.field(name) for name in TOUCH] + [texts for _ in self._whole_touch]
        values += [one_array(column).take(texts.indices) for column in found.values.values()]
        values = [value.cast(field.type) for value, field in zip(values, fields, strict=True)]
        sizes = to_numpy(pc.list_value_length(lists).cast(pa.int64()))
        ends = number_array(np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]), pa.int32())
        rows = pa.StructArray.from_arrays(values, fields=fields)
        wrong = np.zeros(len(lists), np.bool_)
        for misfit in found.misfits.values():
            wrong[np.repeat(np.arange(len(lists)), sizes)[misfit[to_numpy(texts.indices)]]] = True
        return pa.ListArray.from_arrays(ends, rows, type=self._kind), wrong


def named(misfits: Mapping[str, Any], count: int) -> Any:
    """For each of some rows the names of columns whose value did not fit; null where all rows fit. `misfits`: masks."""
    names = [name for name, wrong in misfits.items() if wrong.any()]
    if not names:
        return pa.nulls(count, pa.list_(pa.string()))
    wrong = np.stack([misfits[name] for name in names], axis=1)
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(wrong.sum(axis=1))])
    values = text_array(names, pa.string()).take(int64_array(np.nonzero(wrong)[1]))
    return pa.ListArray.from_arrays(number_array(ends, pa.int32()), values)
