"""SQL statements as frozen data; each distinct text is parsed once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from tests.simulator.columns import Column, lit
from tests.simulator.sql import Parser


@dataclass(frozen=True)
class Merge:
    """MERGE INTO a table: `inserts` columns to values, or `deletes` what matches."""

    path: str
    view: str
    on: Column
    deletes: bool
    inserts: tuple[tuple[str, Column], ...] = ()


@dataclass(frozen=True)
class Delete:
    """DELETE FROM a table."""

    path: str
    where: Column


@dataclass(frozen=True)
class Optimize:
    """OPTIMIZE of a table's partitions; `sorts`: ZORDER BY, which rewrites single files too."""

    path: str
    where: Column
    sorts: bool


@lru_cache(maxsize=4_000)
def statement(text: str) -> Merge | Delete | Optimize:
    """What a statement says."""
    parser = Parser(text)
    if parser.take("MERGE", "INTO"):
        return _merge(parser)
    deletes = parser.take("DELETE", "FROM")
    if not deletes:
        parser.need("OPTIMIZE")
    path = parser.next()[1].partition(".")[2].strip("`")
    where = parser.expression() if parser.take("WHERE") else lit(True)
    return Delete(path, where) if deletes else Optimize(path, where, parser.take("ZORDER"))


def _merge(parser: Parser) -> Merge:
    path = parser.next()[1].split(".", 1)[1].strip("`")
    parser.need("T", "USING")
    view = parser.next()[1]
    parser.need("S", "ON")
    on = parser.expression()
    if parser.take("WHEN", "MATCHED", "THEN", "DELETE"):
        return Merge(path, view, on, True)
    parser.need("WHEN", "NOT", "MATCHED", "THEN", "INSERT", "(")
    names = []
    while not parser.take(")"):
        names.append(parser.next()[1].strip("`"))
        parser.take(",")
    parser.need("VALUES")
    return Merge(path, view, on, False, tuple(zip(names, parser.items_in_brackets(), strict=True)))
