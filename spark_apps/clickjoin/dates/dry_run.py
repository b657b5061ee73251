"""A dry run: what a backfill would find on a date, and do there."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from clickjoin.dates import ledger
from clickjoin.dates.late_events import context, expired
from clickjoin.dates.rebuild import counted
from clickjoin.kernel.data_skipping import rows_in
from clickjoin.model.ids import MICROS
from clickjoin.retry.pending import open_rows

if TYPE_CHECKING:
    from clickjoin.dates.closing import Order
    from clickjoin.engine import Engine
    from clickjoin.model.span import Day


def outline(engine: Engine, day: Day, order: Order) -> dict[str, Any]:
    """State of a date, `rows` of its output, and what would be tried again or rebuilt.

    pending, unjoinable: events of the date that would be tried again (those given up: where their primary is there);
    expired: older than the registry's boundary and in no output yet; rebuilt: rows that would be rebuilt;
    missing: by reason, ids of the output that cannot be, so that a rebuild would refuse the date.
    """
    delta, span = engine.lake.delta, day.span
    row = ledger.newest(delta).get(day.date)
    waits = open_rows(delta)
    found: dict[str, Any] = {
        "date": str(day),
        "state": row["state"] if row else "never closed",
        "rows": _rows(engine, "joined", day),
        "pending": sum(span.low <= event["event_time"] < span.high for event in waits),
        "unjoinable": _rows(engine, "unjoinable", day),
    }
    ctx = context(engine, "outline", int(datetime.now(UTC).timestamp() * MICROS))
    found["expired"] = expired(engine, span, ctx).count() if _rows(engine, "expired", day) else 0
    if order.action == "rebuild":
        counts = counted(span, ctx)
        found["rebuilt"] = counts.pop("rows")
        found["missing"] = {name: count for name, count in counts.items() if count}
    return found


def _rows(engine: Engine, name: str, day: Day) -> int:
    """Ids of a table in a date; of the output, whose partitions are whole buckets, the log knows."""
    extent = day.span.extent(int(engine.pipeline.registry.bucket))
    rows = rows_in(engine.lake.delta.files(name), extent)
    if name == "joined" or not rows:
        return rows
    return engine.lake.read_extent(name, extent).where(day.span.sql()).select("event_id").distinct().count()
