"""Landing again what was read and is in no table any more: the journal knows where it was, and the sources hold it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.engines.context import Context
from clickjoin.forgotten.known import not_to_land
from clickjoin.kernel.land_task import aside, placed
from clickjoin.model.batch_plan import BatchPlan
from clickjoin.model.errors import SourceError
from clickjoin.model.extent import text
from clickjoin.model.ids import MICROS
from clickjoin.model.split import PlannedSplit
from clickjoin.schemas import BY_NAME, QUARANTINE
from clickjoin.schemas.arrow import arrow_schema

if TYPE_CHECKING:
    from clickjoin.sources.port import Source

MAX_BYTES = 256_000_000  # of sources, at a time: the rows pass through this process
_LATEST, _LONG = round(datetime(9999, 1, 1, tzinfo=UTC).timestamp() * MICROS), 64 << 20


def reland(ctx: Context, sources: Mapping[str, Source], wanted: Iterable[PlannedSplit], *, judged: bool) -> int:
    """Land the records of splits that no table holds, as their own batches would have; returns how many.

    All in one commit a table, under this recovery batch's number. Of many bytes only the first splits, and one at
    least: the others are found again. `judged`: what was bad is in `quarantine` still, so that the others were good,
    whatever `limits` and `output.strict` say by now.
    """
    ctx.forgotten = not_to_land(ctx.lake.delta, by_id=ctx.pipeline.by_id)
    found: dict[str, list[pa.Table]] = {name: [] for name in _tables(ctx)}
    left = MAX_BYTES
    for planned in wanted:
        source = sources[planned.stream]
        size = source.size(planned.split)
        if size > left < MAX_BYTES:
            break
        left -= size
        records = _missing(ctx, source, planned, judged)
        if records is not None and records.num_rows:
            place = _as_planned(ctx, planned).place(planned.stream)
            found[planned.stream].append(placed(records, place)[0])
            found[QUARANTINE.name].append(aside(records, place))
    return sum(_append(ctx, name, [part for part in parts if part.num_rows]) for name, parts in found.items())


def seal(ctx: Context) -> None:
    """Let no late copy of this recovery batch land anything."""
    for name in _tables(ctx):
        ctx.lake.delta.commit_txn_only(name, ctx.plan.txn)


def _tables(ctx: Context) -> tuple[str, ...]:
    return (*(item.name for item in ctx.pipeline.inputs), QUARANTINE.name)


def _append(ctx: Context, name: str, parts: list[pa.Table]) -> int:
    if not parts:
        return 0
    schema = arrow_schema(BY_NAME[name])
    rows = pa.concat_tables([part.select(schema.names).cast(schema) for part in parts])
    ctx.lake.append(name, rows, ctx.plan.txn)
    return int(rows.num_rows)


def _as_planned(ctx: Context, planned: PlannedSplit) -> Context:
    own = BatchPlan(ctx.plan.pipeline, planned.replica, "join", planned.batch, planned.planned)
    return replace(ctx, plan=own)


def _missing(ctx: Context, source: Source, planned: PlannedSplit, judged: bool) -> pa.Table | None:
    """Records of a split that are in no table; None where the split cannot be read any more."""
    spec = ctx.pipeline.spec(planned.stream, planned.planned)
    if judged:
        longest = max(spec.max_record, _LONG)
        spec = replace(spec, earliest_micros=0, latest_micros=_LATEST, max_record=longest, typed=())
    try:
        if source.lost([planned.split]):
            return None
        records = source.read_again(ctx.lake.spark, [planned.split], spec)
    except SourceError:
        return None
    held = _offsets(ctx, planned)
    return records.filter(pc.invert(pc.is_in(records["offset"], pa.array(sorted(held), records["offset"].type))))


def _offsets(ctx: Context, planned: PlannedSplit) -> set[int]:
    """Where records of a split begin that are in a table."""
    part = f"replica = {text(planned.replica)} AND source_partition = {text(planned.split.partition)}"
    own, mine = f"{part} AND batch = {planned.batch}", f"stream = {text(planned.stream)}"
    # A record that the other stream of one log has judged is in its place, whichever of its batches that was.
    judged = f"{part} AND (batch = {planned.batch} OR NOT {mine})" if ctx.pipeline.shares_log else f"{own} AND {mine}"
    rows = [ctx.lake.read(planned.stream).where(own), ctx.lake.read(QUARANTINE.name).where(judged)]
    return {row["offset"] for row in rows[0].select("offset").unionAll(rows[1].select("offset")).collect()}
