"""The functions of Spark SQL that the product uses, by their names: for `pyspark.sql.functions` and for SQL texts."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from tests.simulator import clock
from tests.simulator.columns import Column, as_column, case, col, unary
from tests.simulator.values import EPOCH, Struct, distinct, micros, order_key

Many = list[Any]


def _c(value: Any) -> Column:
    return col(value) if isinstance(value, str) else as_column(value)


def _all(name: str, given: tuple[Any, ...], op: Callable[..., Any]) -> Column:
    """A function of several expressions that is null where one of them is."""
    parts = [_c(part) for part in given]
    fns = [part.fn for part in parts]

    def fn(row: dict[str, Any]) -> Any:
        values = [one(row) for one in fns]  # type: ignore[misc]
        return None if None in values else op(*values)

    return Column(fn, name, tuple(ref for part in parts for ref in part.refs))


def _fold(name: str, of: Any, op: Callable[[Many], Any]) -> Column:
    """An aggregate over the values of one expression."""
    part = _c(of)
    fn = part.fn
    assert fn, name
    return Column(None, f"{name}({part.name})", part.refs, fold=lambda rows: op([fn(row) for row in rows]))


def _known(values: Many) -> Many:
    return [value for value in values if value is not None]


def when(condition: Column, value: Any) -> Column:
    """CASE WHEN."""
    return case([(condition, as_column(value))], None)


def coalesce(*given: Any) -> Column:
    """The first that is not null."""
    parts = [_c(part) for part in given]
    if any(part.fold for part in parts):
        folds = [part.over_rows() for part in parts]
        return Column(None, "coalesce", fold=lambda rows: next((x for f in folds if (x := f(rows)) is not None), None))
    refs = tuple(ref for part in parts for ref in part.refs)
    if parts[0].window:
        others = coalesce(*parts[1:]).fn
        made = Column(None, "coalesce", refs)
        made.window = (*parts[0].window[:2], lambda value, row: others(row) if value is None else value)  # type: ignore[misc]
        return made
    fns = [part.fn for part in parts]
    return Column(lambda row: next((x for f in fns if (x := f(row)) is not None), None), "coalesce", refs)  # type: ignore[misc]


def struct(*given: Any) -> Column:
    """A struct of columns."""
    parts = [_c(part) for part in given]
    names, fns = tuple(part.name for part in parts), [part.fn for part in parts]
    return Column(lambda row: Struct.of(names, [f(row) for f in fns]), "struct", names)  # type: ignore[misc]


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
    import builtins

    return _fold("sum", of, lambda values: builtins.sum(known) if (known := _known(values)) else None)


def min(of: Any) -> Column:
    """The least; null of none."""
    import builtins

    return _fold("min", of, lambda values: builtins.min(_known(values), key=order_key, default=None))


def max(of: Any) -> Column:
    """The greatest; null of none."""
    import builtins

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


def row_number() -> Column:
    """The number of a row in its window, from 1."""
    return Column(None, "row_number")


def unix_micros(of: Any) -> Column:
    """Microseconds since 1970."""
    return unary(micros, _c(of), "unix_micros")


def timestamp_micros(of: Any) -> Column:
    """The moment of microseconds since 1970."""
    return unary(lambda x: EPOCH + timedelta(microseconds=x), _c(of), "timestamp_micros")


def current_timestamp() -> Column:
    """Now."""
    return Column(lambda row: datetime.fromtimestamp(clock.now(), UTC), "current_timestamp")


def pmod(of: Any, by: Any) -> Column:
    """Remainder that is never negative."""
    return _all("pmod", (of, by), lambda x, y: x % y)


@lru_cache
def _strftime(pattern: str) -> str:
    known = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}
    out, quoted = "", pattern.split("'")
    for at, part in enumerate(quoted):
        if at % 2 == 0:
            for name, code in known.items():
                part = part.replace(name, code)
        out += part
    return out


def date_format(of: Any, pattern: Any) -> Column:
    """A moment as text."""
    text = _strftime(as_column(pattern).fn({}))  # type: ignore[misc]
    return unary(lambda x: x.strftime(text), _c(of), "date_format")


def make_dt_interval(*given: Any) -> Column:
    """An interval of days, hours, minutes, seconds."""

    def made(days: int = 0, hours: int = 0, minutes: int = 0, seconds: Any = 0) -> timedelta:
        whole = ((days * 24 + hours) * 60 + minutes) * 60_000_000
        return timedelta(microseconds=whole + round(seconds * 1_000_000))

    return _all("make_dt_interval", tuple(as_column(part) for part in given), made)


def crc32(of: Any) -> Column:
    """CRC-32 of bytes."""
    return unary(zlib.crc32, _c(of), "crc32")


def encode(of: Any, charset: Any) -> Column:
    """Text as bytes."""
    return unary(lambda x: x.encode(), _c(of), "encode")


def power(of: Any, to: Any) -> Column:
    """A power."""
    return _all("power", (of, to), lambda x, y: float(x) ** float(y))


def least(*given: Any) -> Column:
    """The least that is not null."""
    fns = [_c(part).fn for part in given]
    import builtins

    return Column(lambda row: builtins.min(_known([f(row) for f in fns]), default=None), "least")  # type: ignore[misc]


def if_(condition: Any, yes: Any, no: Any) -> Column:
    """One or the other."""
    return case([(condition, as_column(yes))], as_column(no))


def get_json_object(of: Any, path: Any) -> Column:
    """One field of a JSON object, as text."""
    name = str(as_column(path).fn({})).removeprefix("$.")  # type: ignore[misc]
    return unary(lambda x: None if (v := json.loads(x).get(name)) is None else str(v), _c(of), "get_json_object")


def concat(*given: Any) -> Column:
    """Texts end to end."""
    return _all("concat", given, lambda *parts: "".join(map(str, parts)))


def substring(of: Any, start: int, length: int) -> Column:
    """Part of a text, from 1."""
    return unary(lambda x: x[start - 1 : start - 1 + length], _c(of), "substring")


def xxhash64(*given: Any) -> Column:
    """A hash, another one than Spark's: of two texts it is the same only if they are."""
    return _all("xxhash64", given, lambda *parts: zlib.crc32(repr(parts).encode()))
