"""MERGE and OPTIMIZE: what they read, what they change, and the partitions that they ask for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from tests.simulator.columns import Column
from tests.simulator.joins import index
from tests.simulator.model import Commit, File, Reading, Table
from tests.simulator.sql_statements import Merge, Optimize

if TYPE_CHECKING:
    from tests.simulator.session import SparkSession

Counts = list[dict[str, Any]]
_MERGED = ("num_affected_rows", "num_updated_rows", "num_deleted_rows", "num_inserted_rows")


def run(spark: SparkSession, what: Merge | Optimize) -> Counts:
    """Run a statement; its counts, and no row where its txn was a replay."""
    table = spark.table(what.path)
    read, txns = spark.begin(table, {})
    if txns is None:
        return []
    if isinstance(what, Merge):
        return _merge(spark, table, read, txns, what)
    return _optimize(spark, table, read, what)


def terms(parts: tuple[Column, ...], prefix: str) -> list[Column]:
    """Terms that speak of the target alone."""
    return [part for part in parts if all(ref.startswith(prefix) for ref in part.refs)]


def ask(table: Table, read: Reading, wanted: list[Column], prefix: str = "") -> list[File]:
    """Files that can hold what is wanted, by partition and statistics; notes what was asked for, as Delta does."""
    inside = {f"{prefix}{name}" for name in table.partitions}
    by_partition = [part for part in wanted if inside.issuperset(part.refs)]
    matches = _on_values(by_partition, prefix)
    read.predicates.append(matches)
    found = [file for file in read.snapshot.files.values() if matches(file.values) and _can_hold(file, wanted, prefix)]
    read.files.update(file.path for file in found)
    return found


def _on_values(parts: list[Column], prefix: str) -> Callable[[Mapping[str, Any]], bool]:
    fns = [part.fn for part in parts]

    def matches(values: Mapping[str, Any]) -> bool:
        row = {f"{prefix}{name}": value for name, value in values.items()}
        return all(fn(row) is True for fn in fns)  # type: ignore[misc]

    return matches


def _can_hold(file: File, wanted: list[Column], prefix: str) -> bool:
    """By least and greatest event time alone: what the product's literals name besides partitions."""
    name = f"{prefix}event_time"
    times = [part for part in wanted if part.refs == (name,)]
    low, high = file.bounds("event_time") if times else (None, None)
    if low is None:
        return True
    high += timedelta(milliseconds=1)
    # A term `time >= x` can hold if it holds of the greatest, `time <= y` if of the least.
    return all(part.fn({name: high}) is True or part.fn({name: low}) is True for part in times)  # type: ignore[misc]


def _merge(spark: SparkSession, table: Table, read: Reading, txns: dict[str, int], what: Merge) -> Counts:
    if what.view not in spark.views:
        raise ValueError(f"[TABLE_OR_VIEW_NOT_FOUND] {what.view}")
    files = ask(table, read, terms(what.on.parts, "t."), "t.")
    source = [{f"s.{name}": value for name, value in row.items()} for row in spark.views[what.view].rows()]
    pairs = [_sides(part) for part in what.on.parts if part.equal and part.equal[0][:2] != part.equal[1][:2]]
    rest = [part.fn for part in what.on.parts if not (part.equal and part.equal[0][:2] != part.equal[1][:2])]
    keyed = index(source, [s for _, s in pairs])
    matched: set[int] = set()
    for row in (row for file in files for row in file.rows):
        target = {f"t.{name}": value for name, value in row.items()}
        for other in keyed.get(tuple(target[t] for t, _ in pairs), ()):
            if all(fn(target | other) is True for fn in rest):  # type: ignore[misc]
                matched.add(id(other))
    new = [_inserted(row, what) for row in source if id(row) not in matched]
    counts = [dict(zip(_MERGED, (len(new), 0, 0, len(new)), strict=True))]
    if new or txns:
        spark.lake.commit_spark(table, read, Commit(spark.lake.write(table, new), txns=txns))
    return counts


def _sides(part: Column) -> tuple[str, str]:
    left, right = part.equal or ("", "")
    return (left, right) if left.startswith("t.") else (right, left)


def _inserted(row: dict[str, Any], what: Merge) -> dict[str, Any]:
    return {name: value.fn(row) for name, value in what.inserts}  # type: ignore[misc]


def _optimize(spark: SparkSession, table: Table, read: Reading, what: Optimize) -> Counts:
    """Rewrite files partition by partition. Since no row changes, rows that others add meanwhile are no conflict."""
    parts: dict[tuple[Any, ...], list[File]] = {}
    for file in ask(table, read, list(what.where.parts)):
        parts.setdefault(tuple(file.values.values()), []).append(file)
    going = [file for held in parts.values() if len(held) > 1 or what.sorts for file in held]
    read.predicates.clear()
    read.files = {file.path for file in going}
    if going:
        adds = spark.lake.write(table, [row for file in going for row in file.rows])
        spark.lake.commit_spark(table, read, Commit(adds, frozenset(read.files), packs=True))
    return [{"path": table.path, "metrics": {"numFilesRemoved": len(going)}}]
