"""Typed columns of JSON records, what does not fit, and what is wrong with it. Runs on executors.

Values are read in whole columns, by Arrow where it can. It reads a column as one type. Which one, some of the records
say; where others do not agree, their part is halved, down to a few that are left to Python (see by_line).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.kernel.arrays import bool_array, int64_array, scalar, text_array, to_numpy
from clickjoin.kernel.parse.arrow_json import EXACT, Shape, braced, bytes_of, can_read, read_json, shape_of, values_at
from clickjoin.kernel.typed_columns.by_line import Found, Number, TooDeep, by_line, decoded, kind_of, text_at, value_at
from clickjoin.kernel.typed_columns.convert import Converted, convert
from clickjoin.kernel.types import arrow_type, delta_type

if TYPE_CHECKING:
    import numpy.typing as npt

    from clickjoin.model.field_path import FieldPath, TypedColumn

    Mask = npt.NDArray[np.bool_]
    Wanted = Mapping[FieldPath, frozenset[pa.DataType]]
    Values = dict[FieldPath, list[Found]]

FEW = 64  # so few records, and Arrow costs more than it saves
_LOOKS = 16  # records that say what is there
_ROUNDED = 5 * 10**13  # milliseconds above, read as floats, would not be exact in microseconds


class Refused(Exception):
    """Arrow cannot read some records, or not as exactly as they stand."""


def read(texts: Any, wanted: Wanted) -> Values:
    """Values of records (an array of JSON objects) by path, each record in one Found of a path.

    `wanted`: paths, and the types that their values are for.
    """
    return Reader(wanted).read(texts)


class Reader:
    """Reads records for some paths and types. `few`: how many are left to Python at once."""

    def __init__(self, wanted: Wanted, few: int = FEW) -> None:
        self._wanted, self._few = wanted, few
        self._types: dict[Shape, frozenset[pa.DataType]] = {}
        for path, types in wanted.items():
            shape = shape_of(path)
            self._types[shape] = self._types.get(shape, frozenset()) | types
        self._flat = can_read(self._types)

    def read(self, texts: Any) -> Values:
        """See the function."""
        found: Values = {path: [] for path in self._wanted}
        for part in self._solve(texts, 0, len(texts)):
            for path, some in part.items():
                found[path] += some
        return found

    def _solve(self, texts: Any, low: int, high: int) -> Iterator[Values]:
        todo = [(low, high)]
        while todo:
            low, high = todo.pop()
            part = texts.slice(low, high - low)
            if high - low <= self._few or not self._flat:
                yield self._slowly(part, low)
                continue
            done = self._fast(part, low)
            if done is None:
                middle = (low + high) // 2
                todo += [(middle, high), (low, middle)]
            else:
                yield done

    def _slowly(self, part: Any, low: int) -> Values:
        found, deep = by_line(part.to_pylist(), range(low, low + len(part)), list(self._wanted))
        for row in deep:
            for path in self._wanted:
                found[path].append(self._alone(part.slice(row - low, 1), row, path))
        return found

    def _alone(self, text: Any, row: int, path: FieldPath) -> Found:
        """A value of a record that is nested too deeply for Python, if Arrow can read it as anything."""
        shape = shape_of(path)
        for kind in ("text", "int", "float", "bool"):
            try:
                return _read(text, {shape: kind}, self._types, {path: shape}, row)[path][0]
            except Refused:
                continue
        return Found(np.array([row]), "bad", pa.repeat(scalar(""), 1))

    def _fast(self, part: Any, low: int) -> Values | None:
        """Values as Arrow reads them; None where it does not."""
        shapes = {path: shape_of(path) for path in self._wanted}
        kinds = self._kinds(part)
        if kinds is None:
            return None
        try:
            return _read(part, kinds, self._types, shapes, low)
        except Refused:
            turned = {shape: "float" if kind == "int" else kind for shape, kind in kinds.items()}
        if turned == kinds:
            return None
        try:
            return _read(part, turned, self._types, shapes, low)
        except Refused:
            return None

    def _kinds(self, part: Any) -> dict[Shape, str] | None:
        """As what each value can be read, by some of the records; None where there are others."""
        seen: dict[Shape, set[str]] = {shape: set() for shape in self._types}
        for at in np.linspace(0, len(part) - 1, _LOOKS).astype(np.int64).tolist():
            try:
                record = decoded(part[at].as_py())
            except (ValueError, TooDeep):
                continue
            for path in self._wanted:
                kind, value = kind_of(value_at(record, path))
                whole = kind == "number" and Number(value).lstrip("-").isdigit()
                seen[shape_of(path)].add("int" if whole else "float" if kind == "number" else kind)
        kinds = {shape: _one_kind(found - {"missing"}) for shape, found in seen.items()}
        return {shape: kind for shape, kind in kinds.items() if kind} if all(kinds.values()) else None


def _one_kind(seen: set[str]) -> str | None:
    if seen <= {"int", "float"}:
        return "float" if "float" in seen else "int" if seen else "text"
    return seen.pop() if len(seen) == 1 and not seen & {"json", "bad"} else None


def _read(
    part: Any,
    kinds: Mapping[Shape, str],
    types: Mapping[Shape, frozenset[pa.DataType]],
    shapes: Mapping[FieldPath, Shape],
    low: int,
) -> Values:
    """Values of some records as these kinds. Errors: Refused."""
    read_as = {shape: _read_as(kind, types[shape]) for shape, kind in kinds.items()}
    table = _table(part, {shape: kind for shape, (_, kind) in read_as.items()})
    rows = np.arange(low, low + len(part))
    found = {path: [Found(rows, read_as[shape][0], values_at(table, path))] for path, shape in shapes.items()}
    for path, (some,) in found.items():
        if some.kind == "float":
            _require_exact(some.values, types[shapes[path]])
    return found


def _read_as(kind: str, types: frozenset[pa.DataType]) -> tuple[str, pa.DataType]:
    """What Arrow reads values of a kind as, for some types, and what they then are. Errors: Refused."""
    if kind in ("text", "bool"):
        return kind, pa.string() if kind == "text" else pa.bool_()
    decimals = {each.scale for each in types if pa.types.is_decimal(each)}
    if len(decimals) == 1 and all(pa.types.is_decimal(each) for each in types):
        return "decimal", pa.decimal128(38, decimals.pop())
    floats = all(pa.types.is_floating(each) for each in types)
    if kind == "int" and not floats:
        return kind, pa.int64()
    if decimals or pa.string() in types:
        raise Refused
    return "float", pa.float64()


def _require_exact(values: Any, types: frozenset[pa.DataType]) -> None:
    """Check that no integer in place of a float would have come out different. Errors: Refused."""
    if all(pa.types.is_floating(each) for each in types) or values.null_count == len(values):
        return
    size = np.abs(to_numpy(values.drop_null()))
    rounded = (size >= _ROUNDED) & (size < 2 * _ROUNDED) if any(pa.types.is_temporal(each) for each in types) else False
    if not (size < EXACT).all() or np.any(rounded):
        raise Refused


def _table(part: Any, types: Mapping[Shape, pa.DataType]) -> pa.Table:
    """Records as Arrow reads them: the texts lie behind one another, and need nothing between them."""
    if part.null_count or not braced(part).all():
        raise Refused
    try:
        table = read_json(bytes_of(part), types)
    except (pa.ArrowInvalid, UnicodeDecodeError):
        raise Refused from None
    if table.num_rows != len(part):
        raise Refused
    return table


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
    found = [_typed_part(part, columns) for part in portions(texts)]
    values = {
        column.name: pa.chunked_array([part[column.name].values for part in found], type_of(column))
        for column in columns
    }
    none = [np.zeros(0, np.bool_)]
    misfits = {column.name: np.concatenate([part[column.name].misfit for part in found] or none) for column in columns}
    return Typed(values, misfits)


def portions(texts: Any) -> Iterator[Any]:
    """Records in parts: one by one, arrays of few would all be left to Python."""
    arrays = [texts]
    if isinstance(texts, pa.ChunkedArray):
        arrays = [texts.combine_chunks()] if texts.nbytes < _LARGE and texts.num_chunks else texts.chunks
    for array in arrays:
        for low in range(0, len(array), _PART):
            yield array.slice(low, _PART)


def _typed_part(texts: Any, columns: Sequence[TypedColumn]) -> dict[str, Converted]:
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
        value = text_at(text, column.path)
    except (ValueError, TooDeep, RecursionError):
        value = "a value that cannot be read"
    shown = value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…"
    why = f"{column.source} is {shown}, which does not fit {column.type}"
    return f"column {column.name}: {why}; fix the record, or the type"
