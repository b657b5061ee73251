"""SQL statements as frozen data; each distinct text is parsed once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from tests.simulator.columns import Column, lit
from tests.simulator.sql import Parser


@dataclass(frozen=True)
class Merge:
    """MERGE INTO a table what matches none of its rows; `inserts`: columns to values."""

    path: str
    view: str
    on: Column
    inserts: tuple[tuple[str, Column], ...]


@dataclass(frozen=True)
class Optimize:
    """OPTIMIZE of a table's partitions; `sorts`: ZORDER BY, which rewrites single files too."""

    path: str
    where: Column
    sorts: bool


@lru_cache(maxsize=4_000)
def statement(text: str) -> Merge | Optimize:
    """What a statement says."""
    parser = Parser(text)
    if parser.take("MERGE", "INTO"):
        return _merge(parser)
    parser.need("OPTIMIZE")
    path = parser.next()[1].partition(".")[2].strip("`")
    where = parser.expression() if parser.take("WHERE") else lit(True)
    return Optimize(path, where, parser.take("ZORDER"))


def _merge(parser: Parser) -> Merge:
    path = parser.next()[1].split(".", 1)[1].strip("`")
    parser.need("T", "USING")
    view = parser.next()[1]
    parser.need("S", "ON")
    on = parser.expression()
    parser.need("WHEN", "NOT", "MATCHED", "THEN", "INSERT", "(")
    names = []
    while not parser.take(")"):
        names.append(parser.next()[1].strip("`"))
        parser.take(",")
    parser.need("VALUES")
    return Merge(path, view, on, tuple(zip(names, parser.items_in_brackets(), strict=True)))
