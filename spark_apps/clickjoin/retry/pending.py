"""The state of a pending event: that of its newest row in table `pending`, by round, then attempt, then resolved last.

Of an event that came again before it was first tried again, the row of the first batch counts. A replica keeps a
history of its own for each event. The rule stands here once, for Spark and for Arrow: a batch whose claims are fixed
has its events chosen again, by either, and they have to be the same ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from clickjoin.kernel import data_skipping
from clickjoin.kernel.arrays import distinct, to_numpy
from clickjoin.model.ids import EVENT_KEY, moment
from clickjoin.schemas import PENDING

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from clickjoin.lake.delta_reader import DeltaReader
    from clickjoin.lake.spark_reader import SparkReader

OWNED = ("replica", *EVENT_KEY)
_ROWS_AT_ONCE = 1_000_000  # of some hundred bytes each, without records


def newest() -> Column:
    """What the newest row of an event has most of, for max_by."""
    return F.struct("round", "attempt", (F.col("state") == "resolved").alias("done"), (-F.col("batch")).alias("first"))


def states(rows: DataFrame, *others: Column) -> DataFrame:
    """The state of each event of each replica. Columns: replica, event_id, event_time, state, and the aggregates."""
    return rows.groupBy(*OWNED).agg(F.max_by("state", newest()).alias("state"), *others)


def waiting(lake: SparkReader, replica: str, version: int | None = None) -> DataFrame:
    """Events of a replica that wait: the newest row of each, with the record of its first row."""
    rows = lake.read("pending", version).where(F.col("replica") == replica)
    others = [name for name in rows.columns if name not in (*EVENT_KEY, "payload")]
    state = rows.groupBy(*EVENT_KEY).agg(
        F.max_by(F.struct(*others), newest()).alias("newest"),
        F.min_by("payload", F.struct(F.col("payload").isNull(), "round", "batch")).alias("payload"),
    )
    return state.select(*EVENT_KEY, "payload", "newest.*").where("state = 'waiting'")


def newest_rows(rows: pa.Table) -> pa.Table:
    """The newest row of each event. Columns in: replica, event_id, event_time, round, attempt, state, batch."""
    if not rows.num_rows:
        return rows
    resolved = pc.cast(pc.equal(rows["state"], "resolved"), pa.int64())
    attempts = pc.multiply(pc.cast(rows["attempt"], pa.int64()), 2)
    rounds = pc.multiply(pc.cast(rows["round"], pa.int64()), 1 << 32)
    rank = pc.add(rounds, pc.add(attempts, resolved))
    keys = pa.table({"rank": rank, "batch": rows["batch"]})
    order = pc.sort_indices(keys, [("rank", "descending"), ("batch", "ascending")])
    ordered = rows.take(order).append_column("_row", pa.array(range(rows.num_rows), pa.int64()))
    first = ordered.group_by(list(OWNED)).aggregate([("_row", "min")])["_row_min"]
    return ordered.take(first).drop_columns("_row")


def waiting_rows(delta: DeltaReader, version: int, replica: str, columns: Sequence[str]) -> Iterator[pa.Table]:
    """Events of a replica that wait as of a version, a stretch of event time after the other.

    Columns: those of newest_rows and those asked for. Errors: DeltaError where the version is gone.
    """
    names = list(dict.fromkeys((*OWNED, "round", "attempt", "state", "batch", *columns)))
    for stretch in _stretches(delta.files_at(PENDING.name, version)):
        rows = newest_rows(delta.read_at(PENDING.name, version, [("replica", "=", replica), *stretch], names))
        rows = rows.filter(pc.equal(rows["state"], "waiting"))
        if rows.num_rows:
            yield rows


def _stretches(files: pa.Table) -> list[list[Any]]:
    """Stretches of event time, as filters, that each hold about as many rows as this process reads at once.

    All states of an event have its time, so they lie in one stretch.
    """
    parts = -(-data_skipping.rows(files) // _ROWS_AT_ONCE)
    if parts <= 1:
        return [[]] if files.num_rows else []
    ends = data_skipping.ends(files)
    middles = ends.least // 2 + ends.most // 2
    order = np.argsort(middles)
    held = np.cumsum(to_numpy(pc.fill_null(files["num_records"].cast(pa.int64()), 0))[order])
    at = np.searchsorted(held, held[-1] * np.arange(1, parts) // parts)
    cuts = [moment(int(cut)) for cut in distinct(middles[order][at])]
    low, high = [None, *cuts], [*cuts, None]
    return [
        ([("event_time", ">=", begin)] if begin else []) + ([("event_time", "<", end)] if end else [])
        for begin, end in zip(low, high, strict=True)
    ]


def open_pending(delta: DeltaReader, *columns: str) -> pa.Table:
    """Events that wait for their primary, by replica. Columns: those of newest_rows but state, and those asked for."""
    names = dict.fromkeys((*OWNED, "round", "attempt", "state", "batch", *columns))
    rows = newest_rows(delta.read("pending", columns=list(names)))
    return rows.filter(pc.equal(rows["state"], "waiting")).select([*OWNED, "round", "attempt", *columns])


def open_rows(delta: DeltaReader, *columns: str) -> list[dict[str, Any]]:
    """The same as plain data."""
    return list(open_pending(delta, *columns).to_pylist())
