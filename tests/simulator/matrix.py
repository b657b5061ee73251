"""Interleavings of two writers of one table, and what becomes of each: run on real Delta, and on the model of it.

`first` reads the table and is held just before it commits; `second` commits meanwhile, whole; then `first` goes on. All
go through the product's own ArrowLake and ArrowTables, so that its reruns are part of what is checked.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from clickjoin.engines.arrow.claims import commit_claims
from clickjoin.model.extent import Extent
from clickjoin.model.ids import MICROS, bucket_of, moment
from clickjoin.model.txn import Txn
from clickjoin.schemas import REGISTRY
from tests.claims import append_by_spark, merge_rows
from tests.simulator.cases import Case, Op

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from clickjoin.engines.arrow import ArrowLake

START = datetime(2026, 1, 1, tzinfo=UTC)
Gate = Callable[["DataFrame"], "DataFrame"]


def _rows(text: str, token: str) -> list[dict[str, Any]]:
    made = []
    for part in text.split():
        at = START + timedelta(hours=int(part[1]), minutes=int(part[3]))
        bucket = bucket_of(round(at.timestamp()) * MICROS, 3600)
        values = (part[0], moment(round(at.timestamp()) * MICROS), bucket, int(part[2]), token, "joined")
        made.append(dict(zip(REGISTRY.names, values, strict=True)))
    return made


def _extent(rows: list[dict[str, Any]]) -> Extent:
    times = [row["event_time"] for row in rows]
    return Extent(len(rows), tuple({row["bucket"]: None for row in rows}), min(times), max(times))


def perform(lake: ArrowLake, op: Op, gate: Gate = lambda rows: rows) -> Any:
    """Do it; what it answers. `gate` stands before the rows of Spark's writers."""
    return _SPARK[op.kind](lake, op, gate) if op.kind in _SPARK else _LIGHT[op.kind](lake, op)


def _framed(lake: ArrowLake, op: Op, gate: Gate) -> tuple[list[dict[str, Any]], DataFrame]:
    rows = _rows(op.rows, "old" if op.kind == "remove" else op.txn[0])
    frame = lake.spark.createDataFrame([tuple(row.values()) for row in rows], REGISTRY.ddl)
    return rows, gate(frame)


def _insert(lake: ArrowLake, op: Op, gate: Gate) -> int | None:
    rows, frame = _framed(lake, op, gate)
    view = f"v{op.txn[0]}{op.rows.replace(' ', '')}"
    frame.createOrReplaceTempView(view)
    return merge_rows(lake, view, _extent(rows).sql("t", {row["shard"] for row in rows}), Txn(*op.txn))


def _remove(lake: ArrowLake, op: Op) -> int:
    rows, frame = _framed(lake, op, lambda frame: frame)
    return lake.delete_matched("registry", frame, _extent(rows), {row["shard"] for row in rows})


def _append(lake: ArrowLake, op: Op, gate: Gate) -> None:
    append_by_spark(lake, _framed(lake, op, gate)[1], Txn(*op.txn))


def _bucket(hour: int) -> str:
    return bucket_of(round(START.timestamp()) * MICROS + hour * 3600 * MICROS, 3600)


def _repack(lake: ArrowLake, op: Op) -> int | None:
    from deltalake.exceptions import CommitFailedError

    try:
        done = lake.delta.open("registry").optimize.compact(partition_filters=[("bucket", "=", _bucket(op.hour))])
    except CommitFailedError:
        return None
    return int(done["numFilesRemoved"])


def _written(lake: ArrowLake, op: Op) -> int | None:
    from clickjoin.kernel import data_file
    from clickjoin.schemas.arrow import arrow_schema

    before = lake.delta.files("registry")["path"]
    rows = pa.Table.from_pylist(_rows(op.rows, op.txn[0]), schema=arrow_schema(REGISTRY))
    return commit_claims(lake, data_file.write(lake.target(REGISTRY), rows), before, Txn(*op.txn))


_SPARK: dict[str, Callable[[ArrowLake, Op, Gate], Any]] = {"insert": _insert, "append": _append}
_LIGHT: dict[str, Callable[[ArrowLake, Op], Any]] = {
    "light": lambda lake, op: lake.delta.append("registry", _rows(op.rows, op.txn[0]), Txn(*op.txn)),
    "fix": lambda lake, op: lake.delta.commit_txn_only("registry", Txn(*op.txn)),
    "drop": lambda lake, op: lake.delta.drop_buckets("registry", _bucket(op.hour)).rows,
    "pack": lambda lake, op: lake.rewrite("registry", _bucket(op.hour)),
    "repack": lambda lake, op: _repack(lake, op),
    "remove": _remove,
    "next": lambda lake, op: lake.delta.newest("registry").commit_next([], Txn(*op.txn)),
    "written": lambda lake, op: _written(lake, op),
    "columns": lambda lake, op: lake.delta.add_columns("registry", {"more": "INT"}),
}


def reason(error: BaseException) -> str:
    """Why a commit was refused, in a word."""
    text = f"{type(error).__name__} {error}".upper().replace("_", "")
    known = ("CONCURRENTTRANSACTION", "CONCURRENTAPPEND", "CONCURRENTDELETEREAD", "CONCURRENTDELETEDELETE")
    names = dict(zip(known, ("transaction", "append", "delete-read", "delete-delete"), strict=True))
    names |= {"METADATACHANGED": "metadata", "COMMITFAILED": "refused"}
    return next((name for mark, name in names.items() if mark in text), text[:200])


def seen(lake: ArrowLake, case: Case) -> str:
    """Ids that the table holds, sorted; and the txns that the case names, where they are there."""
    ids = "".join(sorted(row["event_id"] for row in lake.delta.read("registry", columns=["event_id"]).to_pylist()))
    missing = [txn for txn in case.txns if lake.delta.latest_txn_version("registry", txn[0]) != txn[1]]
    return ids + "".join(f" without {txn}" for txn in missing)
