"""Spark SQL's aggregates, by their names."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

from tests.simulator.columns import Column, as_column, col
from tests.simulator.values import distinct, order_key

Many = list[Any]


def _c(value: Any) -> Column:
    return col(value) if isinstance(value, str) else as_column(value)


def _fold(name: str, of: Any, op: Callable[[Many], Any]) -> Column:
    """An aggregate over the values of one expression."""
    part = _c(of)
    fn = part.fn
    assert fn, name
    return Column(None, f"{name}({part.name})", part.refs, fold=lambda rows: op([fn(row) for row in rows]))


def _known(values: Many) -> Many:
    return [value for value in values if value is not None]


def count(of: Any) -> Column:
    """How many are not null; of `*`, how many rows."""
    if isinstance(of, str) and of == "*":
        return Column(None, "count(1)", fold=len)
    return _fold("count", of, lambda values: len(_known(values)))


def count_if(of: Any) -> Column:
    """How many are true."""
    return _fold("count_if", of, lambda values: len([1 for value in values if value is True]))


def sum(of: Any) -> Column:
    """The sum; null of none."""
    return _fold("sum", of, lambda values: builtins.sum(known) if (known := _known(values)) else None)


def min(of: Any) -> Column:
    """The least; null of none."""
    return _fold("min", of, lambda values: builtins.min(_known(values), key=order_key, default=None))


def max(of: Any) -> Column:
    """The greatest; null of none."""
    return _fold("max", of, lambda values: builtins.max(_known(values), key=order_key, default=None))


def _by(name: str, of: Any, by: Any, *, least: bool) -> Column:
    value, key = _c(of).fn, _c(by).fn
    assert value
    assert key

    def fold(rows: list[dict[str, Any]]) -> Any:
        ranked = [row for row in rows if key(row) is not None]
        if not ranked:
            return None
        chosen = sorted(ranked, key=lambda row: order_key(key(row)))
        return value(chosen[0] if least else chosen[-1])

    return Column(None, name, _c(of).refs, fold=fold)


def max_by(of: Any, by: Any) -> Column:
    """The value of the row with the greatest other value."""
    return _by("max_by", of, by, least=False)


def min_by(of: Any, by: Any) -> Column:
    """The value of the row with the least other value."""
    return _by("min_by", of, by, least=True)


def collect_set(of: Any) -> Column:
    """Distinct values that are not null."""
    return _fold("collect_set", of, distinct)


def collect_list(of: Any) -> Column:
    """Values that are not null."""
    return _fold("collect_list", of, _known)


def bool_or(of: Any) -> Column:
    """Whether any is true."""
    return _fold("bool_or", of, lambda values: any(known) if (known := _known(values)) else None)


def first(of: Any, ignorenulls: bool = False) -> Column:
    """The first one."""
    return _fold("first", of, lambda values: next(iter(_known(values) if ignorenulls else values), None))


def percentile_approx(of: Any, at: Any, accuracy: Any = None) -> Column:
    """Values at some shares of the order."""
    shares = at.fn({}) if isinstance(at, Column) and at.fn else at

    def pick(values: Many) -> Any:
        known = sorted(_known(values))
        if not known:
            return None
        found = [known[int(share * (len(known) - 1))] for share in (shares if isinstance(shares, list) else [shares])]
        return found if isinstance(shares, list) else found[0]

    return _fold("percentile_approx", of, pick)
