"""Landing again what was read and is in no table any more: the journal knows where it was, and the files hold it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.context import Context
from clickjoin.dispatcher.plan import STREAMS, BatchPlan
from clickjoin.errors import SourceError
from clickjoin.event_store import local
from clickjoin.lake.types import arrow_schema
from clickjoin.tables import BY_NAME, QUARANTINE
from clickjoin.verification.journals import text
from clickjoin.verification.pieces import Piece

if TYPE_CHECKING:
    from clickjoin.sources.base import Source

MOST_BYTES = 256_000_000  # of files, at a time: the rows pass through this process
TABLES = (*STREAMS, QUARANTINE.name)


def reland(ctx: Context, sources: Mapping[str, Source], wanted: Iterable[Piece]) -> int:
    """Land the records of slices that no table holds, as their own batches would have; returns how many.

    All in one commit a table, under this recovery batch's number.
    """
    found: dict[str, list[pa.Table]] = {name: [] for name in TABLES}
    left = MOST_BYTES
    for piece in wanted:
        source = sources[piece.stream]
        left -= source.size(piece.slice)
        if left < 0:
            break
        records = _missing(ctx, source, piece)
        if records is not None and records.num_rows:
            good, bad = local.landed(_as_planned(ctx, piece), piece.stream, records)
            found[piece.stream].append(good)
            found[QUARANTINE.name].append(bad)
    return sum(_append(ctx, name, [part for part in parts if part.num_rows]) for name, parts in found.items())


def seal(ctx: Context) -> None:
    """Let no late copy of this recovery batch land anything."""
    for name in TABLES:
        ctx.lake.fix(name, ctx.plan.txn)


def _append(ctx: Context, name: str, parts: list[pa.Table]) -> int:
    if not parts:
        return 0
    schema = arrow_schema(BY_NAME[name])
    rows = pa.concat_tables([part.select(schema.names).cast(schema) for part in parts])
    ctx.lake.append(name, rows, ctx.plan.txn)
    return int(rows.num_rows)


def _as_planned(ctx: Context, piece: Piece) -> Context:
    own = BatchPlan(ctx.plan.pipeline, piece.replica, "join", piece.batch, piece.planned)
    return replace(ctx, plan=own)


def _missing(ctx: Context, source: Source, piece: Piece) -> pa.Table | None:
    """Records of a slice that are in no table; None where the slice cannot be read any more."""
    spec = ctx.pipeline.spec(piece.stream, piece.planned)
    try:
        if source.lost([piece.slice]):
            return None
        records = source.read_here([piece.slice], spec)
        if records is None:
            records = source.read(ctx.lake.spark, [piece.slice], spec).toArrow()
    except SourceError:
        return None
    held = _offsets(ctx, piece)
    return records.filter(pc.invert(pc.is_in(records["offset"], pa.array(sorted(held), records["offset"].type))))


def _offsets(ctx: Context, piece: Piece) -> set[int]:
    """Where records of a slice begin that are in a table."""
    own = f"replica = {text(piece.replica)} AND batch = {piece.batch} AND generation = {text(piece.slice.generation)}"
    rows = [ctx.lake.read(piece.stream).where(own), ctx.lake.read(QUARANTINE.name).where(own)]
    rows[1] = rows[1].where(f"stream = {text(piece.stream)}")
    return {row["offset"] for row in rows[0].select("offset").unionAll(rows[1].select("offset")).collect()}
