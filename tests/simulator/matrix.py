"""Interleavings of two writers of one table, and what becomes of each: run on real Delta, and on the model of it.

`first` reads the table and is held just before it commits; `second` commits meanwhile, whole; then `first` goes on. All
go through the product's own Lake and SmallTables, so that its reruns are part of what is checked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from clickjoin.events import MICROS, bucket_of, moment
from clickjoin.lake import Txn, few
from clickjoin.lake.extent import Extent
from clickjoin.lake.upkeep import drop_buckets
from clickjoin.tables import REGISTRY

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from clickjoin.lake import Lake

START = datetime(2026, 1, 1, tzinfo=UTC)
Gate = Callable[["DataFrame"], "DataFrame"]


@dataclass(frozen=True)
class Op:
    """One writer's work. `rows`: ids, each a letter with hour, shard and minute, such as `a000 b130`."""

    kind: str
    rows: str = ""
    txn: tuple[str, int] = ("none", 0)
    hour: int = 0


@dataclass(frozen=True)
class Case:
    """One interleaving. `refused`: why `first` was refused, try by try; `ids`: what the table holds at the end."""

    name: str
    first: Op
    second: Op | None
    refused: tuple[str, ...]
    answer: Any
    ids: str
    before: Sequence[Op] = ()
    txns: tuple[tuple[str, int], ...] = ()


def insert(rows: str, app: str = "A", version: int = 1) -> Op:
    """The product's insert-only MERGE under a txn, with the literals of its rows."""
    return Op("insert", rows, (app, version))


def append(rows: str, app: str = "A", version: int = 1) -> Op:
    """Spark's append under a txn."""
    return Op("append", rows, (app, version))


def light(rows: str, app: str = "A", version: int = 1) -> Op:
    """delta-rs's append under a txn."""
    return Op("light", rows, (app, version))


def claim(rows: str, app: str = "A", version: int = 1) -> Op:
    """The product's claim without a MERGE."""
    return Op("few", rows, (app, version))


def fix(app: str = "A", version: int = 1) -> Op:
    """delta-rs's commit of a txn without rows."""
    return Op("fix", "", (app, version))


def remove(rows: str) -> Op:
    """The product's MERGE that deletes what a view names."""
    return Op("remove", rows)


def drop(hour: int) -> Op:
    """delta-rs's delete of whole partitions before an hour."""
    return Op("drop", hour=hour)


def pack(hour: int) -> Op:
    """The product's rewrite of one hour's files, by Spark."""
    return Op("pack", hour=hour)


def repack(hour: int) -> Op:
    """delta-rs's rewrite of one hour's files, which the product leaves alone for what is seen here."""
    return Op("repack", hour=hour)


_OLD = (light("x000", "old", 1), light("y000", "old", 2))  # two files in hour 0, shard 0
CASES = (
    Case(
        "merge, merge: same bucket and shard, same id", insert("a000 b001"), insert("b001", "B"), ("append",), 1, "ab"
    ),
    Case("merge, merge: other bucket", insert("a000"), insert("b100", "B"), (), 1, "ab"),
    Case("merge, merge: other shard", insert("a000"), insert("b010", "B"), (), 1, "ab"),
    Case(
        "merge, merge: other times of one bucket and shard", insert("a000"), insert("b009", "B"), ("append",), 1, "ab"
    ),
    Case("merge, Spark append", insert("a000"), append("a000", "B"), ("append",), 0, "a"),
    Case("merge, Spark append elsewhere", insert("a000"), append("a100", "B"), (), 1, "aa"),
    Case("merge, delta-rs append", insert("a000"), light("a000", "B"), ("append",), 0, "a"),
    Case("merge, delta-rs append elsewhere", insert("a000"), light("a100", "B"), (), 1, "aa"),
    Case("merge, its partition dropped", insert("a000"), drop(1), ("delete-read",), 1, "a", _OLD),
    Case("merge, another partition dropped", insert("a100"), drop(1), (), 1, "a", _OLD),
    Case("merge, files of other times dropped", insert("a009"), drop(1), (), 1, "a", _OLD),
    Case("merge, its partition packed", insert("a000"), pack(0), ("append",), 1, "axy", _OLD),
    Case("merge, another partition packed", insert("a100"), pack(0), (), 1, "axy", _OLD),
    Case("merge, same txn with other rows", insert("a000"), insert("b100"), ("transaction",), None, "b"),
    Case("merge, same txn fixed", insert("a000"), fix(), ("transaction",), None, ""),
    Case("merge, another's txn fixed", insert("a000"), fix("B"), (), 1, "a"),
    Case("merge, columns added", insert("a000"), Op("columns"), ("metadata",), 1, "a"),
    Case("merge replayed", insert("a000"), None, (), None, "b", (insert("b000"),)),
    Case("merge older than its txn", insert("a000"), None, (), None, "", (fix(version=2),)),
    Case("merge that inserts nothing", insert("a000"), None, (), 0, "a", (insert("a000", "B"),), (("A", 1),)),
    Case("removal, merge in its partition", remove("x000"), insert("a000"), ("append",), None, "ay", _OLD),
    Case("removal, merge elsewhere", remove("x000"), insert("a100"), (), None, "ay", _OLD),
    Case("removal, the same removal", remove("x000"), remove("x000"), ("delete-read",), None, "y", _OLD),
    Case("removal, its partition packed", remove("x000"), pack(0), ("append",), None, "y", _OLD),
    Case("removal, its partition dropped", remove("x000"), drop(1), ("delete-read",), None, "", _OLD),
    Case("append, append of the same txn", append("a000"), append("b000"), ("transaction",), None, "b"),
    Case("append, append of another", append("a000"), append("b000", "B"), (), None, "ab"),
    Case("append, merge", append("a000"), insert("a000", "B"), (), None, "aa"),
    Case("append, same txn fixed", append("a000"), fix(), ("transaction",), None, ""),
    Case("append, its partition dropped", append("a000"), drop(1), (), None, "a", _OLD),
    Case("append replayed", append("a000"), None, (), None, "b", (append("b000"),)),
    Case("append of nothing", append(""), None, (), None, "", (), (("A", 1),)),
    Case("delta-rs append, the same txn", light("a000"), light("b000"), ("refused",), False, "b"),
    Case("delta-rs append, another's", light("a000"), light("b000", "B"), (), True, "ab"),
    Case("delta-rs append, Spark merge of another", light("a000"), insert("b000", "B"), (), True, "ab"),
    Case("fix, merge of the same txn", fix(), insert("a000"), ("refused",), False, "a"),
    Case("fix, append of the same txn", fix(), append("a000"), ("refused",), False, "a"),
    Case("fix, merge of another", fix(), insert("a000", "B"), (), True, "a"),
    Case("fix, columns added", fix(), Op("columns"), ("refused",), True, ""),
    Case("drop, merge into what goes", drop(1), insert("a000"), ("refused",), 3, "", _OLD),
    Case("drop, merge elsewhere", drop(1), insert("a100"), (), 2, "a", _OLD),
    Case("drop, append into what goes", drop(1), append("a000"), ("refused",), 3, "", _OLD),
    Case("drop, the same drop", drop(1), drop(1), ("refused",), 0, "", _OLD),
    Case("drop, a removal in what goes", drop(1), remove("x000"), ("refused",), 1, "", _OLD),
    Case("drop, what goes is packed", drop(1), pack(0), ("refused",), 2, "", _OLD),
    Case("delta-rs pack, merge into it", repack(0), insert("a000"), (), 2, "axy", _OLD),
    Case("delta-rs pack, append into it", repack(0), append("a000"), (), 2, "axy", _OLD),
    Case("delta-rs pack, a removal in it", repack(0), remove("x000"), ("refused",), None, "y", _OLD),
    Case("delta-rs pack, its partition dropped", repack(0), drop(1), ("refused",), None, "", _OLD),
    Case("delta-rs pack, packed by Spark", repack(0), pack(0), (), 2, "xxyy", _OLD),
    Case("delta-rs pack, the same: rows are doubled", repack(0), repack(0), (), 2, "xxyy", _OLD),
    Case("claim, nothing between", claim("a000"), None, (), 1, "axy", _OLD, (("A", 1),)),
    Case("claim of what is held", claim("a000 b000"), None, (), 1, "ab", (light("a000", "B"),), (("A", 1),)),
    Case("claim of what is all held", claim("a000"), None, (), 0, "a", (light("a000", "B"),)),
    Case("claim replayed", claim("a000"), None, (), None, "b", (claim("b000"),)),
    Case("claim, claim of the same", claim("a000"), claim("a000", "B"), ("refused",), 0, "a"),
    Case("claim, claim elsewhere", claim("a000"), claim("b110", "B"), ("refused",), 1, "ab"),
    Case("claim, merge of the same", claim("a000 b000"), insert("a000", "B"), ("refused",), 1, "ab"),
    Case("claim, same txn merged", claim("a000"), insert("b000"), ("refused",), None, "b"),
    Case("claim, same txn fixed", claim("a000"), fix(), ("refused",), None, ""),
    Case("claim, its partition packed", claim("a000"), pack(0), ("refused",), 1, "axy", _OLD),
    Case("claim, its partition dropped", claim("a000"), drop(1), ("refused",), 1, "a", _OLD),
    Case("claim, columns added", claim("a000"), Op("columns"), ("refused",), 1, "a"),
    Case("merge, claim of the same", insert("a000 b000"), claim("a000", "B"), ("append",), 1, "ab"),
    Case("merge, claim elsewhere", insert("a000"), claim("b110", "B"), (), 1, "ab"),
    Case("merge, same txn claimed", insert("a000"), claim("b000"), ("transaction",), None, "b"),
    Case("removal, claim in its partition", remove("x000"), claim("a000"), ("append",), None, "ay", _OLD),
    Case("drop, claim into what goes", drop(1), claim("a000"), ("refused",), 3, "", _OLD),
    Case("next version, nothing between", Op("next", txn=("A", 1)), None, (), True, "", (), (("A", 1),)),
    Case("next version, append between", Op("next", txn=("A", 1)), append("a000", "B"), ("refused",), False, "a"),
    Case("next version, fix between", Op("next", txn=("A", 1)), fix("B"), ("refused",), False, ""),
)


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


def perform(lake: Lake, op: Op, gate: Gate = lambda rows: rows) -> Any:
    """Do it; what it answers. `gate` stands before the rows of Spark's writers."""
    return _SPARK[op.kind](lake, op, gate) if op.kind in _SPARK else _LIGHT[op.kind](lake, op)


def _framed(lake: Lake, op: Op, gate: Gate) -> tuple[list[dict[str, Any]], DataFrame]:
    rows = _rows(op.rows, "old" if op.kind == "remove" else op.txn[0])
    frame = lake.spark.createDataFrame([tuple(row.values()) for row in rows], REGISTRY.ddl)
    return rows, gate(frame)


def _insert(lake: Lake, op: Op, gate: Gate) -> int | None:
    rows, frame = _framed(lake, op, gate)
    view = f"v{op.txn[0]}{op.rows.replace(' ', '')}"
    frame.createOrReplaceTempView(view)
    return lake.insert_new(view, _extent(rows).sql("t", {row["shard"] for row in rows}), Txn(*op.txn))


def _remove(lake: Lake, op: Op, gate: Gate) -> None:
    rows, frame = _framed(lake, op, gate)
    frame.createOrReplaceTempView("removed")
    lake.delete_matched("registry", "removed", _extent(rows).sql("t", {row["shard"] for row in rows}))


def _append(lake: Lake, op: Op, gate: Gate) -> None:
    lake.append("registry", _framed(lake, op, gate)[1], Txn(*op.txn))


def _bucket(hour: int) -> str:
    return bucket_of(round(START.timestamp()) * MICROS + hour * 3600 * MICROS, 3600)


def _repack(lake: Lake, op: Op) -> int | None:
    from deltalake.exceptions import CommitFailedError

    try:
        done = lake.small.open("registry").optimize.compact(partition_filters=[("bucket", "=", _bucket(op.hour))])
    except CommitFailedError:
        return None
    return int(done["numFilesRemoved"])


def _few(lake: Lake, op: Op) -> int | None:
    from clickjoin.lake.types import arrow_schema

    rows = _rows(op.rows, op.txn[0])
    table = pa.Table.from_pylist(rows, schema=arrow_schema(REGISTRY))
    return few.insert_new(lake, table, Txn(*op.txn))


_SPARK: dict[str, Callable[[Lake, Op, Gate], Any]] = {"insert": _insert, "remove": _remove, "append": _append}
_LIGHT: dict[str, Callable[[Lake, Op], Any]] = {
    "light": lambda lake, op: lake.small.append("registry", _rows(op.rows, op.txn[0]), Txn(*op.txn)),
    "fix": lambda lake, op: lake.fix("registry", Txn(*op.txn)),
    "drop": lambda lake, op: drop_buckets(lake.small, "registry", _bucket(op.hour)).rows,
    "pack": lambda lake, op: lake.rewrite("registry", _bucket(op.hour)),
    "repack": lambda lake, op: _repack(lake, op),
    "next": lambda lake, op: lake.small.commit_next("registry", lake.small.version("registry"), Txn(*op.txn)),
    "few": lambda lake, op: _few(lake, op),
    "columns": lambda lake, op: lake.small.add_columns("registry", {"more": "INT"}),
}


def reason(error: BaseException) -> str:
    """Why a commit was refused, in a word."""
    text = f"{type(error).__name__} {error}".upper().replace("_", "")
    known = ("CONCURRENTTRANSACTION", "CONCURRENTAPPEND", "CONCURRENTDELETEREAD", "CONCURRENTDELETEDELETE")
    names = dict(zip(known, ("transaction", "append", "delete-read", "delete-delete"), strict=True))
    names |= {"METADATACHANGED": "metadata", "COMMITFAILED": "refused"}
    return next((name for mark, name in names.items() if mark in text), text[:200])


def seen(lake: Lake, case: Case) -> str:
    """Ids that the table holds, sorted; and the txns that the case names, where they are there."""
    ids = "".join(sorted(row["event_id"] for row in lake.small.read("registry", columns=["event_id"]).to_pylist()))
    missing = [txn for txn in case.txns if lake.small.settled_txn("registry", txn[0]) != txn[1]]
    return ids + "".join(f" without {txn}" for txn in missing)
