"""Landing again what was read and is in no table any more: the journal knows where it was, and the sources hold it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.engines.context import Context
from clickjoin.forgotten.known import not_to_land
from clickjoin.kernel.land_task import aside, placed
from clickjoin.kernel.parse.lines import TOO_LONG
from clickjoin.model.batch_plan import BatchPlan
from clickjoin.model.errors import SourceError
from clickjoin.model.extent import text
from clickjoin.model.split import PlannedSplit
from clickjoin.schemas import BY_NAME, QUARANTINE
from clickjoin.schemas.arrow import arrow_schema

if TYPE_CHECKING:
    from clickjoin.sources.port import Source

MAX_BYTES = 256_000_000  # of sources, at a time: the rows pass through this process


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
        spec = spec.without_limits()
    try:
        if source.lost([planned.split]):
            return None
        records = source.read_again(ctx.lake.spark, [planned.split], spec)
    except SourceError:
        return None
    held = _offsets(ctx, planned)
    missing = records.filter(pc.invert(pc.is_in(records["offset"], pa.array(sorted(held), records["offset"].type))))
    return _not_judged(ctx, planned, missing) if ctx.pipeline.shares_log else missing


def _offsets(ctx: Context, planned: PlannedSplit) -> set[int]:
    """Where records of a split begin that are in a table."""
    own = f"{_part(planned)} AND batch = {planned.batch}"
    rows = [ctx.lake.read(planned.stream).where(own), ctx.lake.read(QUARANTINE.name).where(own)]
    rows[1] = rows[1].where(f"stream = {text(planned.stream)}")
    return {row["offset"] for row in rows[0].select("offset").unionAll(rows[1].select("offset")).collect()}


def _not_judged(ctx: Context, planned: PlannedSplit, records: pa.Table) -> pa.Table:
    """Without what the other stream of one log has judged, by other limits than today's: it is in its place there.

    That is a good record that was too long for the other stream, and one that is too long now and was good for it.
    """
    (other,) = (item.name for item in ctx.pipeline.inputs if item.name != planned.stream)
    aside = ctx.lake.read(QUARANTINE.name).where(f"stream = {text(other)} AND reason = '{TOO_LONG}'")
    found = [rows.where(_part(planned)).select("offset") for rows in (aside, ctx.lake.read(other))]
    too_long, good = ({row["offset"] for row in rows.collect()} for rows in found)
    judged = [
        offset in (good if reason == TOO_LONG else too_long if reason is None else ())
        for offset, reason in zip(records["offset"].to_pylist(), records["reason"].to_pylist(), strict=True)
    ]
    return records.filter(pc.invert(pa.array(judged, pa.bool_())))


def _part(planned: PlannedSplit) -> str:
    return f"replica = {text(planned.replica)} AND source_partition = {text(planned.split.partition)}"
