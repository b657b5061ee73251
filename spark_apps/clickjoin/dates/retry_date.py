"""Trying again what has not joined of a range: what was given up although its primary came, and all that waits."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from clickjoin.engine import Engine
from clickjoin.kernel.data_skipping import rows_in
from clickjoin.model.batch_plan import TableSplit
from clickjoin.model.ids import MICROS
from clickjoin.report.status import replicas
from clickjoin.retry.pending import open_rows

if TYPE_CHECKING:
    from clickjoin.model.span import Span

_CENTURY = 100 * 365 * 86400 * MICROS


def try_again(engine: Engine, span: Span) -> dict[str, int]:
    """Redrive and retry the events of a range, of every replica, due or not; each that waits is tried once.

    Returns `redriven`, `tried` and `joined`. A replica that runs meanwhile is not disturbed: its batches are its
    journal's, whoever carries them through.
    """
    low, high = (int(moment.timestamp() * MICROS) for moment in (span.low, span.high))
    delta, done = engine.lake.delta, {"redriven": 0, "tried": 0, "joined": 0}
    engines = {name: engine if name == engine.replica else engine.copy(name) for name in replicas(delta)}
    given_up = rows_in(delta.files("unjoinable"), span.extent(int(engine.pipeline.registry.bucket)))
    for own in engines.values():
        if given_up or own.redriver.unsettled():
            done["redriven"] += own.redrive((low, high))
    waits = Counter(row["replica"] for row in open_rows(delta) if span.low <= row["event_time"] < span.high)
    for name, left in waits.items():
        own = engines.get(name) or engine.copy(name)  # one that has begun since may have put events aside already
        while left > 0:
            settled = _try(own, low, high)
            if settled is None or not settled["events_in"]:
                break
            done["tried"] += settled["events_in"]
            done["joined"] += settled["joined"]
            left -= settled["events_in"]
    return done


def _try(engine: Engine, low: int, high: int) -> dict[str, int] | None:
    delta, now = engine.lake.delta, int(engine.clock() * MICROS)
    part = TableSplit(
        "pending", delta.version("pending"), now + _CENTURY, engine.pipeline.batch.max_events, since=low, until=high,
        read_until=engine.read_until(now), passed=engine.passed(),
    )  # fmt: skip
    plan = engine.retry.next_of_table(part)
    if plan is None:
        return None
    row = engine.finish(plan).metrics
    return {name: int(str(row[name])) for name in ("events_in", "joined")}
