"""Typed columns of JSON records, what does not fit, and what is wrong with it. Runs on executors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.kernel.arrays import bool_array, int64_array, text_array
from clickjoin.kernel.typed_columns.by_line import TooDeep, decoded, json_text, value_at
from clickjoin.kernel.typed_columns.convert import Converted, convert
from clickjoin.kernel.typed_columns.read import read
from clickjoin.kernel.types import arrow_type, delta_type

if TYPE_CHECKING:
    import numpy.typing as npt

    from clickjoin.kernel.typed_columns.by_line import Found
    from clickjoin.model.field_path import TypedColumn

    Mask = npt.NDArray[np.bool_]

_PART = 1 << 16  # records that are read together
_LARGE = 1 << 30  # bytes that fit one array of text with room to spare


class Typed(NamedTuple):
    """Columns by name (chunked arrays), and which of their values did not fit."""

    values: dict[str, Any]
    misfits: dict[str, Mask]


def type_of(column: TypedColumn) -> pa.DataType:
    """A column's type in Arrow."""
    return arrow_type(delta_type(column.type))


def typed(texts: Any, columns: Sequence[TypedColumn]) -> Typed:
    """Columns of some records (an array of JSON text)."""
    found = [_part(part, columns) for part in _parts(texts)]
    values = {
        column.name: pa.chunked_array([part[column.name].values for part in found], type_of(column))
        for column in columns
    }
    none = [np.zeros(0, np.bool_)]
    misfits = {column.name: np.concatenate([part[column.name].misfit for part in found] or none) for column in columns}
    return Typed(values, misfits)


def _parts(texts: Any) -> Iterator[Any]:
    """Records in parts: one by one, arrays of few would all be left to Python."""
    arrays = [texts]
    if isinstance(texts, pa.ChunkedArray):
        arrays = [texts.combine_chunks()] if texts.nbytes < _LARGE and texts.num_chunks else texts.chunks
    for array in arrays:
        for low in range(0, len(array), _PART):
            yield array.slice(low, _PART)


def _part(texts: Any, columns: Sequence[TypedColumn]) -> dict[str, Converted]:
    wanted: dict[Any, frozenset[pa.DataType]] = {}
    for column in columns:
        wanted[column.path] = wanted.get(column.path, frozenset()) | {type_of(column)}
    found = read(texts, wanted)
    return {column.name: _column(found[column.path], column) for column in columns}


def _column(found: Sequence[Found], column: TypedColumn) -> Converted:
    to = type_of(column)
    parts = [convert(some.kind, some.values, to) for some in found]
    whole, misfit = parts[0]
    if len(parts) > 1:
        order = np.argsort(np.concatenate([some.rows for some in found]), kind="stable")
        whole = pa.concat_arrays([part.values for part in parts]).take(int64_array(order))
        misfit = np.concatenate([part.misfit for part in parts])[order]
    if column.default is not None and whole.null_count:
        missing = pc.and_(pc.is_null(whole), bool_array(~misfit))
        whole = pc.if_else(missing, default_of(column).values[0], whole)
    return Converted(whole, misfit)


def default_of(column: TypedColumn) -> Converted:
    """A column's default, by the rule of its values. Needs a default."""
    (found,) = read(text_array([f'{{"":{column.default}}}'], pa.string()), {("",): frozenset({type_of(column)})})[("",)]
    return convert(found.kind, found.values, type_of(column))


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
