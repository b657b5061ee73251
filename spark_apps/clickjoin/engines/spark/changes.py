"""Rows that come, go or get other values, each change one MERGE, DELETE or UPDATE of Delta's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from clickjoin.engines.port import RowChange
from clickjoin.kernel.forgotten import EMPTIED
from clickjoin.kernel.rewrite_task import BadRecords, Events
from clickjoin.model.extent import Extent, text
from clickjoin.model.ids import EVENT_KEY
from clickjoin.spark.rows import frame
from clickjoin.spark.views import named

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from clickjoin.engines.spark.lake import SparkLake
    from clickjoin.model.txn import Txn

_ID = "t.event_id = s.event_id"
_KEY = f"{_ID} AND t.event_time = s.event_time"


def insert_new(
    lake: SparkLake, name: str, rows: pa.Table, extent: Extent | None, txn: Txn | None, *, by_id: bool
) -> int:
    """See Lake.insert_new."""
    columns = [column for column in lake.delta.columns(name) if column in rows.column_names]
    near = f"{_KEY} AND {place(lake, name, extent)}" if extent else _KEY
    added = lake.commits.insert(name, frame(lake.spark, rows.select(columns)), _ID if by_id else near, txn)
    if txn:
        lake.delta.commit_txn_only(name, txn)
    return added or 0


def delete_matched(
    lake: SparkLake, name: str, events: DataFrame, extent: Extent | None, shards: Iterable[int] | None,
    same: Sequence[str], up_to: Sequence[str],
) -> int:  # fmt: skip
    """See Lake.delete_matched."""
    where = _matched(same, up_to) + (f" AND {place(lake, name, extent, shards)}" if extent else "")
    rows = events.select(*EVENT_KEY, *same, *up_to).distinct().localCheckpoint()
    return _merge(lake, name, rows, where, "DELETE")


def change_rows(lake: SparkLake, name: str, change: RowChange) -> int:
    """See Lake.change_rows."""
    values = ", ".join(
        f"`{column}` = {'NULL' if value is None else text(value)}" for column, value in (change.values or {}).items()
    )
    if isinstance(change.meant, BadRecords):
        where = _bad(change.meant)
        count = int(lake.read(name).where(where).count())
        if count:
            lake.commits.run(name, f"UPDATE {{table}} SET {values} WHERE {where}")
        return count
    rows, where = _meant(lake, name, change)
    return _merge(lake, name, rows, where, f"UPDATE SET {values}" if change.values is not None else "DELETE")


def count_rows(lake: SparkLake, name: str, change: RowChange) -> int:
    """See Lake.count_rows."""
    if isinstance(change.meant, BadRecords):
        return int(lake.read(name).where(_bad(change.meant)).count())
    return _count(lake, name, *_meant(lake, name, change))


def replace_rows(lake: SparkLake, name: str, held: pa.Table, kept: pa.Table, same: Sequence[str], txn: Txn) -> bool:
    """See Lake.replace_rows: all rows of these events go, and those that are kept come, in one MERGE.

    Rows that come have no key to match by, so that each is inserted. They are there already where the rows were read.
    """
    spark, columns = lake.spark, list(lake.delta.columns(name))
    keys = [*EVENT_KEY, *same]
    meant = frame(spark, held.select(keys))
    if _count(lake, name, meant.distinct(), _matched(same, ())) != held.num_rows:
        return False
    going = meant.distinct().select(*(F.col(key).alias(f"k_{key}") for key in keys))
    coming = frame(spark, kept.select(columns))
    rows = going.unionByName(coming, allowMissingColumns=True)
    where = " AND ".join(f"t.`{key}` = s.`k_{key}`" for key in keys)
    names, values = (", ".join(f"{dot}`{column}`" for column in columns) for dot in ("", "s."))
    with named(rows) as view:
        lake.commits.run(
            name,
            f"MERGE INTO {{table}} t USING {view} s ON {where} WHEN MATCHED THEN DELETE "
            f"WHEN NOT MATCHED AND s.k_event_id IS NULL THEN INSERT ({names}) VALUES ({values})",
            txn,
        )
    return lake.delta.latest_txn_version(name, txn.app_id) >= txn.version


def _meant(lake: SparkLake, name: str, change: RowChange) -> tuple[DataFrame, str]:
    meant: Events = change.meant  # type: ignore[assignment]
    where = _matched(meant.same, meant.up_to)
    if change.extent:
        where += f" AND {place(lake, name, change.extent)}"
    if change.with_record:
        where += f" AND t.payload IS NOT NULL AND t.payload != {text(EMPTIED)}"
    names = [*EVENT_KEY, *meant.same, *meant.up_to]
    return frame(lake.spark, meant.keys.select(names)).distinct(), where


def _matched(same: Sequence[str], up_to: Sequence[str]) -> str:
    more = [f"t.`{column}` = s.`{column}`" for column in same] + [f"t.`{column}` <= s.`{column}`" for column in up_to]
    return " AND ".join([_KEY, *more])


def _merge(lake: SparkLake, name: str, rows: DataFrame, where: str, change: str) -> int:
    count = _count(lake, name, rows, where)
    if count:
        with named(rows) as view:
            lake.commits.run(name, f"MERGE INTO {{table}} t USING {view} s ON {where} WHEN MATCHED THEN {change}")
    return count


def _count(lake: SparkLake, name: str, rows: DataFrame, where: str) -> int:
    return int(lake.read(name).alias("t").join(rows.alias("s"), F.expr(where), "left_semi").count())


def place(lake: SparkLake, name: str, extent: Extent, shards: Iterable[int] | None = None) -> str:
    """Where rows lie, as literal terms over the target `t`: they prune its files."""
    table = lake.delta.table(name)
    where = extent.sql("t", shards if "shard" in table.names else None)
    if "event_date" in table.partitions and extent.dates:
        where += f" AND t.event_date BETWEEN DATE '{extent.dates[0]}' AND DATE '{extent.dates[-1]}'"
    return where


def _bad(meant: BadRecords) -> str:
    terms = [
        f"(stream = {text(stream)} AND sha2(raw, 256) IN ({', '.join(text(one) for one in sorted(digests))}))"
        for stream, digests in meant.digests.items()
        if digests
    ]
    return " OR ".join(terms) or "FALSE"
