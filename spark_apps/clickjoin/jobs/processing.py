"""The job that gives the output's events to a processor, key by key."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from clickjoin.dispatcher.handover import HandOver
from clickjoin.lake.requirements import has_tables
from clickjoin.model.reporter import Reporter
from clickjoin.processing.check import check as check_sums
from clickjoin.processing.processing import Processing
from clickjoin.processing.rebuild import put_aside

if TYPE_CHECKING:
    from clickjoin.config import Pipeline

_COUNTS = ("events", "late", "known", "signals")
_PAUSE = 1.0


def process(
    spark: None, pipeline: Pipeline, replica: str, report: Reporter, lease: float | None = None, *,
    rebuild: bool = False, check: bool = False, hands_over: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Process new rows of the output for the pipeline's lease (or for `lease` seconds; 0: until none is left).

    `hands_over`: take the place of the process before, and work until the next one takes this one's place.
    `check`: compare the sums with the output afterwards. Where nothing has joined yet, a lease waits for it.
    """
    seconds, said = pipeline.batch.lease if lease is None else lease, _Summary(report)
    if seconds and not _begun(pipeline, seconds):
        return said.to_dict() | {"watermark_rests_on": f"{pipeline.root}: no tables yet: nothing has joined"}
    if rebuild:
        for place in put_aside(pipeline, datetime.now(UTC)):
            report(f"what was processed before lies in {place}")
    made = Processing(pipeline)
    if seconds and hands_over:
        turn = HandOver(made.planner.dispatcher, seconds, pipeline.batch.hand_over)
        turn.take_over()
        made.run(turn.seconds, said.add, turn.is_over)
    elif seconds:
        made.run(seconds, said.add)
    else:
        made.drain(said.add)
    return said.to_dict() | {"watermark_rests_on": made.planner.held_back()} | (_checked(pipeline) if check else {})


def _begun(pipeline: Pipeline, seconds: float) -> bool:
    """Wait until the pipeline has tables; whether it has."""
    end = time.monotonic() + seconds
    while not has_tables(pipeline.root):
        if time.monotonic() > end:
            return False
        time.sleep(min(_PAUSE, seconds))
    return True


def _checked(pipeline: Pipeline) -> dict[str, Any]:
    found = check_sums(pipeline)
    counts = f"{found.events:,} events and {found.late:,} late ones of {found.rows:,} rows, {found.signals:,} signals"
    verdict = "; ".join(found.faults) or f"each event was counted once: {counts}"
    return {"ok": not found.faults, "verdict": verdict, "notes": list(found.notes)}


class _Summary:
    """What a run of batches did."""

    def __init__(self, report: Reporter) -> None:
        self.report = report
        self._batches = 0
        self._counts = dict.fromkeys(_COUNTS, 0)
        self._last: dict[str, Any] = {}

    def add(self, row: dict[str, Any]) -> None:
        """Count a batch, and report a line about it."""
        self._batches += 1
        self._last = row
        for name in _COUNTS:
            self._counts[name] += row[name]
        mark = f"{row['watermark']:%Y-%m-%dT%H:%M:%SZ}" if row["watermark"] else "not known"
        late = f", {row['late']:,} late" if row["late"] else ""
        self.report(
            f"{datetime.now(UTC):%H:%M:%S} process {row['batch']}: {row['events']:,} events of {row['keys']:,} keys"
            f"{late}, {row['signals']:,} signals; watermark {mark} ({row['seconds']:.2f} s)"
        )

    def to_dict(self) -> dict[str, Any]:
        """The summary as plain data; `changed`: whether anything was reported."""
        mark = self._last.get("watermark")
        return {
            "batches": self._batches, **self._counts, "changed": self._counts["signals"] > 0,
            "keys_in_state": self._last.get("keys_in_state"), "backlog_events": self._last.get("backlog_events", 0),
            "watermark": mark.isoformat() if mark else None,
        }  # fmt: skip
