"""The functions of Spark SQL that the product uses, by their names: for `pyspark.sql.functions` and for SQL texts."""

from __future__ import annotations

import builtins
import json
import zlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from tests.simulator import clock
from tests.simulator.aggregates import *  # noqa: F403
from tests.simulator.columns import Column, as_column, case, col, unary
from tests.simulator.values import EPOCH, Struct, micros


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


def octet_length(of: Any) -> Column:
    """Bytes of a text."""
    return unary(lambda x: len(x.encode()), _c(of), "octet_length")


def encode(of: Any, charset: Any) -> Column:
    """Text as bytes."""
    return unary(lambda x: x.encode(), _c(of), "encode")


def power(of: Any, to: Any) -> Column:
    """A power."""
    return _all("power", (of, to), lambda x, y: float(x) ** float(y))


def least(*given: Any) -> Column:
    """The least that is not null."""
    fns = [_c(part).fn for part in given]
    return Column(lambda row: builtins.min([x for f in fns if (x := f(row)) is not None], default=None), "least")  # type: ignore[misc]


def if_(condition: Any, yes: Any, no: Any) -> Column:
    """One or the other."""
    return case([(condition, as_column(yes))], as_column(no))


def to_json(of: Column) -> Column:
    """A struct as JSON text."""
    return unary(lambda x: json.dumps(dict(zip(x.names, x, strict=True)), default=str), of, "to_json")


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


def split_part(of: Any, separator: Any, number: Any) -> Column:
    """A part of a text, from 1."""
    return _all("split_part", (of, separator, number), lambda text, by, n: (text.split(by)[n - 1 :] or [""])[0])


def xxhash64(*given: Any) -> Column:
    """A hash, another one than Spark's: of two texts it is the same only if they are."""
    return _all("xxhash64", given, lambda *parts: zlib.crc32(repr(parts).encode()))
