"""Few rows, written by this process: a commit of delta-rs costs a tenth of what a Spark job does."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence, Set
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.arrays import plain
from clickjoin.lake import prune
from clickjoin.lake.commits import Unwritable
from clickjoin.lake.picking import KEYS, Stretches, pick, whole
from clickjoin.lake.types import arrow_type
from clickjoin.tables import REGISTRY

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyspark.sql import DataFrame

    from clickjoin.lake.lake import Lake
    from clickjoin.lake.small import SmallTables
    from clickjoin.lake.txn import Txn
    from clickjoin.lake.written import Written

_KEY = KEYS.names
_MOST_FILES, _MOST_HELD = 2_000, 20_000_000  # read in seconds, where a MERGE sorts them
_READERS = 8


class Overtaken(Exception):
    """Another commit came between a look at the registry and the commit that rests on it: look again."""


class Taken(Exception):
    """One of the ids that were to be claimed together has been claimed since they were looked up."""


class TooMany(Exception):
    """The claims that a batch is to be checked against are more than this process should read: have Spark MERGE it."""


def collected(small: SmallTables, name: str, rows: DataFrame) -> pa.Table:
    """Rows for a table in this process, with the types that it has. Columns in: the table's, and others."""
    kinds = small.columns(name)
    wanted = [column for column in rows.columns if column in kinds]
    got: Any = rows.select(*(f"`{column}`" for column in wanted)).toArrow()
    return pa.table({column: got[column].cast(arrow_type(kinds[column])) for column in wanted})


def append(lake: Lake, name: str, rows: DataFrame, txn: Txn) -> None:
    """Lake.append for few rows. By Spark where somebody has given the table a feature that delta-rs cannot write."""
    try:
        lake.append(name, collected(lake.small, name, rows), txn)
    except Unwritable:
        lake.append(name, rows, txn)


def insert_new(lake: Lake, rows: pa.Table, txn: Txn) -> int | None:
    """Lake.insert_new for few rows, columns as the registry's. Errors: TooMany where it would have to read too much.

    The commit is the very next version after the one that was looked at, or none: whoever committed between, be it to
    other buckets, has it look again. So two can never claim the same id.
    """
    return lake.rerun(REGISTRY.name, lambda: _insert(lake.small, rows, txn))


def _insert(small: SmallTables, rows: pa.Table, txn: Txn) -> int | None:
    table = small.open(REGISTRY.name)
    if _is_held(table, txn):
        return None
    files = prune.holding(pa.table(table.get_add_actions(flatten=True)), rows)
    if files.num_rows > _MOST_FILES or prune.rows(files) > _MOST_HELD:
        raise TooMany(f"{files.num_rows} files")
    taken = claims_of(small.path(REGISTRY.name), prune.paths(files), rows)
    new = rows.join(taken, _KEY, join_type="left anti") if taken.num_rows else rows
    if new.num_rows and not small.append_next(table, REGISTRY.name, new.select(rows.column_names), txn):
        raise Overtaken(small.path(REGISTRY.name))
    return int(new.num_rows)


def _is_held(table: DeltaTable, txn: Txn) -> bool:
    """Whether the very version that a handle shows holds a txn."""
    held = table.transaction_version(txn.app_id)
    return held is not None and int(held) >= txn.version


def insert_written(lake: Lake, files: Sequence[Written], seen: Set[str], txn: Txn) -> int | None:
    """Add claims that workers have written to the registry; returns as Lake.insert_new does.

    `seen`: the registry's files that they have been checked against; what has come since is looked through here.
    Errors: Taken where one of the ids has been claimed meanwhile; then nothing is added.
    """
    return lake.rerun(REGISTRY.name, lambda: _add(lake.small, files, seen, txn))


def _add(small: SmallTables, files: Sequence[Written], seen: Set[str], txn: Txn) -> int | None:
    table = small.open(REGISTRY.name)
    if _is_held(table, txn):
        return None
    since: dict[tuple[str, ...], list[str]] = defaultdict(list)
    actions = pa.table(table.get_add_actions(flatten=True))
    places = zip(*(actions[name].to_pylist() for name in ("partition.bucket", "partition.shard", "path")), strict=True)
    for bucket, shard, path in places:
        if path not in seen:
            since[bucket, str(shard)].append(path)
    root = small.path(REGISTRY.name)
    for file in files:
        _require_free(root, file, since.get((file.values["bucket"], file.values["shard"]), []))
    if not small.add_next(table, files, txn):
        raise Overtaken(root)
    return sum(file.rows for file in files)


def _require_free(root: str, file: Written, others: list[str]) -> None:
    if not others:
        return
    mine = whole(root, [file.path], KEYS)
    taken = claims_of(root, others, mine)
    if taken.num_rows and mine.join(taken, _KEY, join_type="left semi").num_rows:
        raise Taken(file.path)


def claims_of(root: str, files: list[str], events: pa.Table) -> pa.Table:
    """Ids and times of the claims in some files of the registry that some events may have. Columns in: both."""
    when = Stretches(np.unique(plain(events["event_time"].cast(pa.int64()))))
    return pick(root, files, pc.unique(events["event_id"]), when, KEYS, _READERS)
