"""Pending events: which of them wait, and which are due to be tried again (Photon, section 3.2.1)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.engines.context import Context
from clickjoin.engines.extents import extents_of
from clickjoin.engines.lookup import primary_extent
from clickjoin.engines.port import JoinInput
from clickjoin.kernel import data_skipping
from clickjoin.kernel.arrays import to_numpy, where
from clickjoin.model.ids import EVENT_KEY, MICROS, moment
from clickjoin.retry.pending import waiting_rows
from clickjoin.retry.vacuumed_version import claimed_before, in_range, is_gone
from clickjoin.schemas import PENDING
from clickjoin.schemas.arrow import arrow_schema

if TYPE_CHECKING:
    from clickjoin.lake.delta_reader import DeltaReader
    from clickjoin.model.batch_plan import TableSplit

_TIME = pa.timestamp("us", "UTC")
_COLUMNS = [name for name in PENDING.names if name != "payload"]
_ORDER = [(name, "ascending") for name in ("due_at", *EVENT_KEY)]


@dataclass(frozen=True)
class Waiting:
    """How many events wait in all, how many are due now, and when the next falls due.

    `ending`: whether the next try of one may be its last.
    """

    all: int
    due: int
    next_due: datetime | None
    ending: bool = False


def look_ahead(
    delta: DeltaReader,
    replica: str,
    version: int,
    now: datetime,
    far: datetime | None = None,
    most: int = 0,
    decided: int | None = None,
) -> Waiting:
    """What there is to retry, as of one version of the table: derived from the columns of a state, without records.

    `far`: what falls due after it is due now; `most`: tries after which an event may be given up; `decided`
    (microseconds): what happened before it is due, too.
    """
    last, count, due, tries = int(now.timestamp() * MICROS), 0, 0, 0
    first: int | None = None
    for rows in waiting_rows(delta, version, replica, ["due_at"]):
        at = _micros(rows, "due_at")
        at = np.where(_lies_before(rows, decided), np.minimum(at, last), at)
        put_off = at > int(far.timestamp() * MICROS) if far else np.zeros(len(at), np.bool_)
        next_ = int(np.where(put_off, last, at).min())
        first = next_ if first is None else min(first, next_)
        count, due = count + len(at), due + int(((at <= last) | put_off).sum())
        tries = max(tries, pc.max(rows["attempt"]).as_py())
    return Waiting(count, due, None if first is None else moment(first), count > 0 and tries + 1 >= most)


def due_events(ctx: Context) -> JoinInput:
    """The events that a retry batch takes up: always the same ones, since the plan names a version of the table.

    Where that version is gone, those that the batch has claimed (see vacuumed_version).
    """
    part, delta = ctx.plan.table, ctx.lake.delta
    if part is None:
        raise ValueError("a retry batch without a split of `pending`")
    try:
        files = delta.files_at("pending", part.version)
        rows = _due_rows(delta, ctx.plan.replica, part, part.passed if ctx.pipeline.match else None)
    except Exception as error:
        if not is_gone(ctx, part, error):
            raise
        rows, files = claimed_before(ctx, part, _COLUMNS), delta.files("pending")
    own, named = extents_of(rows, ctx.bucket_seconds)
    return JoinInput(own, primary_extent(ctx, own, named), rows, data_skipping.within(files, own))


def _due_rows(delta: DeltaReader, replica: str, part: TableSplit, decided: int | None) -> pa.Table:
    """Events that are due, the first `limit` of them, without their records. `decided`: as in look_ahead."""
    rows = arrow_schema(PENDING).empty_table().select(_COLUMNS)
    for some in waiting_rows(delta, part.version, replica, _COLUMNS):
        due = (
            where(some, (_is_due(some, part) | _lies_before(some, decided)) & in_range(some, part))
            .select(_COLUMNS)
            .cast(rows.schema)
        )
        rows = pa.concat_tables([rows, due]).sort_by(_ORDER).slice(0, part.limit)
    return rows


def _is_due(rows: pa.Table, part: TableSplit) -> np.ndarray[Any, Any]:
    due = _micros(rows, "due_at")
    found: np.ndarray[Any, Any] = due <= part.due
    return found if part.far is None else found | (due > part.far)


def _lies_before(rows: pa.Table, decided: int | None) -> np.ndarray[Any, Any]:
    return np.zeros(rows.num_rows, np.bool_) if decided is None else _micros(rows, "event_time") < decided


def _micros(rows: pa.Table, name: str) -> np.ndarray[Any, Any]:
    return to_numpy(pc.fill_null(rows[name].cast(_TIME).cast(pa.int64()), 0))
