"""Columns: expressions over rows as closures, with SQL's three-valued logic of nulls."""

from __future__ import annotations

import operator
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from tests.simulator.logic import both, caster, either, times
from tests.simulator.values import Struct

Fn = Callable[[dict[str, Any]], Any]
Fold = Callable[[list[dict[str, Any]]], Any]


class Column:
    """An expression: `fn` of a row, or `fold` of a group's rows; what it refers to, and how it can be taken apart."""

    __slots__ = ("branches", "equal", "fn", "fold", "name", "parts", "refs", "window")

    def __init__(self, fn: Fn | None, name: str, refs: tuple[str, ...] = (), *, fold: Fold | None = None) -> None:
        self.fn = fn
        self.fold = fold
        self.name = name
        self.refs = refs
        self.parts: tuple[Column, ...] = (self,)  # terms of a conjunction
        self.equal: tuple[str, str] | None = None  # of `a = b` over two bare columns
        self.window: tuple[Any, ...] | None = None  # its specification, the function, and what is done to its value
        self.branches: list[tuple[Column, Column]] | None = None

    def over_rows(self) -> Fold:
        """This expression over a group: an aggregate, or a constant."""
        if self.fold:
            return self.fold
        fn = self.fn
        assert fn, self.name
        return lambda rows: fn(rows[0]) if rows else (None if self.refs else fn({}))

    def __eq__(self, other: Any) -> Column:  # type: ignore[override]
        made = _binary(operator.eq, self, other, "=")
        right = as_column(other)
        if len(self.refs) == len(right.refs) == 1 and self.name == self.refs[0] and right.name == right.refs[0]:
            made.equal = (self.name, right.name)
        return made

    __hash__ = object.__hash__

    def __ne__(self, other: Any) -> Column:  # type: ignore[override]
        return _binary(operator.ne, self, other, "<>")

    def __lt__(self, other: Any) -> Column:
        return _binary(operator.lt, self, other, "<")

    def __le__(self, other: Any) -> Column:
        return _binary(operator.le, self, other, "<=")

    def __gt__(self, other: Any) -> Column:
        return _binary(operator.gt, self, other, ">")

    def __ge__(self, other: Any) -> Column:
        return _binary(operator.ge, self, other, ">=")

    def __add__(self, other: Any) -> Column:
        return _binary(operator.add, self, other, "+")

    def __sub__(self, other: Any) -> Column:
        return _binary(operator.sub, self, other, "-")

    def __mul__(self, other: Any) -> Column:
        return _binary(times, self, other, "*")

    def __truediv__(self, other: Any) -> Column:
        return _binary(lambda x, y: None if y == 0 else x / y, self, other, "/")

    def __mod__(self, other: Any) -> Column:
        return _binary(lambda x, y: None if y == 0 else (abs(x) % abs(y)) * (1 if x >= 0 else -1), self, other, "%")

    def __and__(self, other: Any) -> Column:
        made = combine(both, self, as_column(other), "and")
        made.parts = self.parts + as_column(other).parts
        return made

    def __or__(self, other: Any) -> Column:
        return combine(either, self, as_column(other), "or")

    def __invert__(self) -> Column:
        return unary(lambda x: not x, self, "not")

    def __neg__(self) -> Column:
        return unary(operator.neg, self, "-")

    def __getitem__(self, name: str) -> Column:
        return unary(lambda x: x.field(name) if isinstance(x, Struct) else x.get(name), self, name)

    def __bool__(self) -> bool:
        raise ValueError("a Column has no truth value: use & | ~")

    def isNull(self) -> Column:
        """Whether it is null."""
        return _null(self, True)

    def isNotNull(self) -> Column:
        """Whether it is not null."""
        return _null(self, False)

    def isin(self, *values: Any) -> Column:
        """Whether it is one of some values; null where that cannot be known."""
        given = values[0] if len(values) == 1 and isinstance(values[0], (list, tuple, set, frozenset)) else values
        items = [as_column(value) for value in given]
        known = {item.fn({}) for item in items if item.fn and not item.refs}
        if None not in known and not any(item.refs for item in items):
            return unary(lambda x: x in known, self, "in")
        whole: Column = as_column(False)
        for item in items:
            whole = whole | (self == item)
        return whole

    def between(self, low: Any, high: Any) -> Column:
        """Whether it lies in a closed range."""
        return (self >= low) & (self <= high)

    def cast(self, kind: Any) -> Column:
        """It as another type."""
        return unary(caster(str(kind)), self, self.name)

    def alias(self, name: str) -> Column:
        """It under another name."""
        made = Column(self.fn, name, self.refs, fold=self.fold)
        made.window = self.window
        return made

    def over(self, spec: Any) -> Column:
        """It over a window."""
        made = Column(None, self.name, self.refs)
        made.window = (spec, self, None)
        return made

    def when(self, condition: Column, value: Any) -> Column:
        """Another branch of a CASE."""
        return case([*(self.branches or []), (condition, as_column(value))], None)

    def otherwise(self, value: Any) -> Column:
        """The last branch of a CASE."""
        return case(self.branches or [], as_column(value))


def lit(value: Any) -> Column:
    """A constant."""
    if isinstance(value, Column):
        return value
    if isinstance(value, datetime) and value.tzinfo is None:
        value = value.replace(tzinfo=UTC)
    return Column(lambda row: value, str(value))


as_column = lit
_COLS: dict[str, Column] = {}


def col(name: str) -> Column:
    """A column by name: of the row, or a field of a struct in it."""
    found = _COLS.get(name)
    if found is None:
        bare = name.replace("`", "")
        found = _COLS[name] = Column(operator.itemgetter(bare), bare, (bare,))
        if "." in bare:
            found.fn = _dotted(bare)
    return found


def _dotted(name: str) -> Fn:
    head, _, field = name.partition(".")

    def fn(row: dict[str, Any]) -> Any:
        if name in row:
            return row[name]
        whole = row[head]
        return None if whole is None else whole.field(field)

    return fn


def _binary(op: Callable[[Any, Any], Any], left: Column, other: Any, name: str) -> Column:
    right = as_column(other)

    def strict(x: Any, y: Any) -> Any:
        return None if x is None or y is None else op(x, y)

    if left.fold or right.fold:
        return combine(strict, left, right, name)
    fa, fb = left.fn, right.fn
    assert fa, name
    assert fb, name

    def fn(row: dict[str, Any]) -> Any:
        x = fa(row)
        if x is None:
            return None
        y = fb(row)
        return None if y is None else op(x, y)

    return Column(fn, name, left.refs + right.refs)


def combine(op: Callable[[Any, Any], Any], left: Column, right: Column, name: str) -> Column:
    """Two expressions under an operator that sees nulls."""
    refs = left.refs + right.refs
    if left.fold or right.fold:
        ga, gb = left.over_rows(), right.over_rows()
        return Column(None, name, refs, fold=lambda rows: op(ga(rows), gb(rows)))
    fa, fb = left.fn, right.fn
    assert fa, name
    assert fb, name
    return Column(lambda row: op(fa(row), fb(row)), name, refs)


def unary(op: Callable[[Any], Any], of: Column, name: str) -> Column:
    """A function of one expression; null of null."""
    fa, ga = of.fn, of.fold
    if ga:
        return Column(None, name, of.refs, fold=lambda rows: None if (x := ga(rows)) is None else op(x))
    assert fa, name
    return Column(lambda row: None if (x := fa(row)) is None else op(x), name, of.refs)


def _null(of: Column, wanted: bool) -> Column:
    fa = of.fn
    if of.fold or fa is None:
        ga = of.over_rows()
        return Column(None, "null", of.refs, fold=lambda rows: (ga(rows) is None) is wanted)
    return Column(lambda row: (fa(row) is None) is wanted, "null", of.refs)


def case(branches: list[tuple[Column, Column]], last: Column | None) -> Column:
    """CASE WHEN … THEN … ELSE … END."""
    pairs = [(when.fn, then.fn) for when, then in branches]
    otherwise = last.fn if last is not None else None

    def fn(row: dict[str, Any]) -> Any:
        for when, then in pairs:
            if when(row) is True:  # type: ignore[misc]
                return then(row)  # type: ignore[misc]
        return otherwise(row) if otherwise else None

    refs = tuple(name for pair in branches for part in pair for name in part.refs)
    made = Column(fn, "CASE", refs + (last.refs if last is not None else ()))
    made.branches = branches if last is None else None
    return made
