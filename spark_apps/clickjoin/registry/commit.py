"""Few rows, written by this process: a commit of delta-rs costs a tenth of what a Spark job does."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence, Set
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.kernel import data_skipping
from clickjoin.kernel.arrays import distinct, to_numpy
from clickjoin.kernel.id_lookup import ids_among
from clickjoin.kernel.parquet_rows import read_columns
from clickjoin.kernel.parquet_scan import KEYS, TimeRanges, scan_by_key
from clickjoin.model.errors import CommitRefused
from clickjoin.schemas import REGISTRY

if TYPE_CHECKING:
    from clickjoin.kernel.data_file import DataFile
    from clickjoin.lake.delta_tables import DeltaTables
    from clickjoin.lake.spark_tables import SparkTables
    from clickjoin.lake.table_version import TableVersion
    from clickjoin.model.txn import Txn

_KEY = KEYS.names
_MAX_FILES, _MAX_CLAIMS = 2_000, 20_000_000  # read in seconds, where a MERGE sorts them
_READERS = 8


class Taken(Exception):
    """One of the ids that were to be claimed together has been claimed since they were looked up."""


class TooMany(Exception):
    """The claims that a batch is to be checked against are more than this process should read: have Spark MERGE it."""


def commit_claim_rows(lake: SparkTables, rows: pa.Table, txn: Txn) -> int | None:
    """SparkTables.merge_insert_only for few rows, columns as the registry's.

    Errors: TooMany where it would have to read too much.

    The commit is the very next version after the one that was read, or none: whoever committed between, be it to
    other buckets, has it look again. So two can never claim the same id.
    """
    return lake.rerun(REGISTRY.name, lambda: _insert(lake.delta, rows, txn), by_spark=False)


def _insert(delta: DeltaTables, rows: pa.Table, txn: Txn) -> int | None:
    newest = delta.known(REGISTRY.name)
    if newest.holds(txn):
        return None
    files = data_skipping.holding(newest.files(), rows)
    if files.num_rows > _MAX_FILES or data_skipping.rows(files) > _MAX_CLAIMS:
        raise TooMany(f"{files.num_rows} files")
    taken = claims_of(delta.path(REGISTRY.name), data_skipping.paths(files), rows)
    new = rows.join(taken, _KEY, join_type="left anti") if taken.num_rows else rows
    return _commit_new(delta, newest, new.select(rows.column_names), txn)


def _commit_new(delta: DeltaTables, newest: TableVersion, new: pa.Table, txn: Txn) -> int:
    if new.num_rows and not newest.commit_next(delta.write(REGISTRY.name, new), txn):
        raise CommitRefused(f"{delta.path(REGISTRY.name)}: another commit came first")
    return int(new.num_rows)


def commit_ids(lake: SparkTables, rows: pa.Table, shards_of: Callable[[], Set[int] | None], txn: Txn) -> int | None:
    """The same where an id is one event's, whatever its time.

    `shards_of`: those that claims can lie in, of a registry that was read before it is asked; None: any.
    """

    def insert() -> int | None:
        newest = lake.delta.known(REGISTRY.name)
        if newest.holds(txn):
            return None
        files, shards = newest.files(), shards_of()
        if shards is not None and files.num_rows:
            files = files.filter(data_skipping.in_shards(files, shards))
        if files.num_rows > _MAX_FILES or data_skipping.rows(files) > _MAX_CLAIMS:
            raise TooMany(f"{files.num_rows} files")
        root, ids = lake.delta.path(REGISTRY.name), pc.unique(rows["event_id"])
        taken = ids_among(root, data_skipping.paths(files), ids, _READERS).ids
        return _commit_new(lake.delta, newest, rows.filter(pc.invert(pc.is_in(rows["event_id"], value_set=taken))), txn)

    return lake.rerun(REGISTRY.name, insert, by_spark=False)


def commit_claim_files(
    lake: SparkTables, files: Sequence[DataFile], seen: pa.ChunkedArray, txn: Txn, *, by_id: bool = False
) -> int | None:
    """Add claims that tasks have written to the registry; returns as SparkTables.merge_insert_only does.

    `seen`: paths of the registry's files that they have been checked against; files committed since are read here.
    Errors: Taken where one of the ids has been claimed meanwhile; then nothing is added.
    """
    return lake.rerun(REGISTRY.name, lambda: _add(lake.delta, files, seen, txn, by_id=by_id), by_spark=False)


def _add(
    delta: DeltaTables, files: Sequence[DataFile], seen: pa.ChunkedArray, txn: Txn, *, by_id: bool = False
) -> int | None:
    newest = delta.known(REGISTRY.name)
    if newest.holds(txn):
        return None
    root = delta.path(REGISTRY.name)
    since = _since(newest.files(), seen, None if by_id else {file.values["bucket"] for file in files})
    for file in files:
        if by_id:
            _require_free_ids(root, file, [path for others in since.values() for path in others])
        else:
            _require_free(root, file, since.get((file.values["bucket"], file.values["shard"]), []))
    if not newest.commit_next(files, txn):
        raise CommitRefused(f"{root}: another commit came first")
    return sum(file.rows for file in files)


def _since(actions: pa.Table, seen: pa.ChunkedArray, buckets: Set[str] | None) -> dict[tuple[str, str], list[str]]:
    """Paths of the registry's files, in some buckets or in all, that are not among those seen; by bucket and shard.

    By Arrow, and only of the buckets that matter: a registry may have a million files.
    """
    if buckets is not None:
        mine = pa.array(sorted(buckets), actions["partition.bucket"].type)
        actions = actions.filter(pc.is_in(actions["partition.bucket"], mine))
    known = seen.filter(pc.is_in(seen, actions["path"].combine_chunks())).combine_chunks()
    new = actions.filter(pc.invert(pc.is_in(actions["path"], known)))
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    places = (new[name].to_pylist() for name in ("partition.bucket", "partition.shard", "path"))
    for bucket, shard, path in zip(*places, strict=True):
        found[bucket, str(shard)].append(path)
    return found


def _require_free(root: str, file: DataFile, others: list[str]) -> None:
    if not others:
        return
    mine = read_columns(root, [file.path], KEYS)
    taken = claims_of(root, others, mine)
    if taken.num_rows and mine.join(taken, _KEY, join_type="left semi").num_rows:
        raise Taken(file.path)


def _require_free_ids(root: str, file: DataFile, others: list[str]) -> None:
    mine = pc.unique(read_columns(root, [file.path], KEYS)["event_id"]) if others else ()
    if others and len(ids_among(root, others, mine, _READERS).ids):
        raise Taken(file.path)


def claims_of(root: str, files: list[str], events: pa.Table) -> pa.Table:
    """Ids and times of the claims in some files of the registry that some events may have. Columns in: both."""
    when = TimeRanges(distinct(to_numpy(events["event_time"].cast(pa.int64()))))
    return scan_by_key(root, files, pc.unique(events["event_id"]), when, KEYS, _READERS)
