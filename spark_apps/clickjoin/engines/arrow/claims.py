"""Claiming from the registry: who owns an id, permanently (Photon, sections 2 and 3.3.2).

A batch's claims are one commit of files that were checked against the registry: as the very next version after one
that was looked at, so that two can never claim the same id.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence, Set
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.kernel.arrays import Array, distinct, mask, to_numpy, where
from clickjoin.kernel.data_file import write
from clickjoin.kernel.event_key import found_among
from clickjoin.kernel.id_filter import ids_among
from clickjoin.kernel.parquet_rows import KEYS, TimeRanges, read_columns, scan_by_key
from clickjoin.model.errors import CommitRefused
from clickjoin.model.ids import claims_order
from clickjoin.schemas import REGISTRY
from clickjoin.schemas.arrow import arrow_schema

if TYPE_CHECKING:
    from clickjoin.engines.arrow.joining import Resolved
    from clickjoin.engines.arrow.lake import ArrowLake
    from clickjoin.engines.context import Context
    from clickjoin.kernel.data_file import DataFile
    from clickjoin.model.txn import Txn

_READERS = 8
_CLAIM = arrow_schema(REGISTRY)


def claim(lake: ArrowLake, ctx: Context, resolved: Resolved) -> bool:
    """See Lake.claim. The registry's files that were committed since the events were screened are read here."""
    files, txn, by_id = resolved.of(REGISTRY.name), ctx.plan.txn, ctx.pipeline.by_id
    wanted = sum(file.rows for file in files)
    claimed = commit_claims(lake, files, resolved.checked_against, txn, by_id=by_id) if wanted else 0
    # Whatever was committed: without a commit of this number a late copy of the batch could still claim.
    committed = lake.delta.commit_txn_only(REGISTRY.name, txn)
    return claimed == wanted if wanted else committed


def commit_claims(
    lake: ArrowLake, files: Sequence[DataFile], seen: pa.ChunkedArray, txn: Txn, *, by_id: bool = False
) -> int | None:
    """Add those of some claims to the registry whose ids are free; returns how many.

    None where the registry holds the txn already: a copy of this batch has claimed. `files`: what was written for it;
    `seen`: paths of its files that this was checked against; `by_id`: an id is one event's,
    whatever its time and bucket. Errors: as of ArrowLake.rerun.
    """
    return lake.rerun(REGISTRY.name, lambda: _commit(lake, files, seen, txn, by_id=by_id))


def _commit(lake: ArrowLake, files: Sequence[DataFile], seen: pa.ChunkedArray, txn: Txn, *, by_id: bool) -> int | None:
    newest = lake.delta.known(REGISTRY.name)
    if newest.holds(txn):
        return None
    root = lake.delta.path(REGISTRY.name)
    since = _since(newest.files(), seen, None if by_id else {file.values["bucket"] for file in files})
    every = [path for others in since.values() for path in others]
    free: list[DataFile] = []
    for file in files:
        others = every if by_id else since.get((file.values["bucket"], file.values["shard"]), [])
        free += _free(lake, file, others, by_id=by_id) if others else [file]
    if free and not newest.commit_next(free, txn):
        raise CommitRefused(f"{root}: another commit came first")
    return sum(file.rows for file in free)


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


def _free(lake: ArrowLake, file: DataFile, others: list[str], *, by_id: bool) -> list[DataFile]:
    """A file of claims, written again without those that some other files of the registry hold, if there are any."""
    root = lake.delta.path(REGISTRY.name)
    mine = read_columns(root, [file.path], _CLAIM)
    taken = _taken_ids(root, mine, others) if by_id else _taken(root, mine, others)
    if not taken.any():
        return [file]
    rows = where(mine, ~taken)
    for name, value in file.values.items():  # a file does not hold its partition's values
        column = pa.repeat(pa.scalar(value).cast(_CLAIM.field(name).type), rows.num_rows)
        rows = rows.set_column(rows.schema.get_field_index(name), name, column)
    return write(lake.target(REGISTRY), rows, claims_order(by_id=by_id))


def _taken(root: str, mine: pa.Table, others: list[str]) -> Array:
    when = TimeRanges(distinct(to_numpy(mine["event_time"].cast(pa.int64()))))
    return found_among(mine, scan_by_key(root, others, pc.unique(mine["event_id"]), when, KEYS, _READERS))


def _taken_ids(root: str, mine: pa.Table, others: list[str]) -> Array:
    found = ids_among(root, others, pc.unique(mine["event_id"]), _READERS)
    return mask(pc.is_in(mine["event_id"], value_set=found.ids))
