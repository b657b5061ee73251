"""How a pipeline stands, from its logs and small tables alone: no Spark needed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from clickjoin.dispatcher.journal import sequences
from clickjoin.model.batch_plan import COUNTS, STEPS
from clickjoin.model.places import JOINED, output_of
from clickjoin.retry.pending import open_rows

if TYPE_CHECKING:
    from clickjoin.lake.delta_reader import DeltaReader

_COUNTED = ("primary", "foreign", "registry", "joined", "unjoinable", "expired", "filtered", "quarantine")


def batch_text(row: Mapping[str, Any], moment: str) -> str:
    """A batch's row of table `metrics` as one line; `moment` is when, as text."""
    counts = ", ".join(f"{name.replace('_', ' ')} {row[name]}" for name in COUNTS if row[name])
    steps = " ".join(f"{name} {row[f'seconds_{name}']:.2f}" for name in STEPS)
    misfits = "".join(f"; {count} values do not fit column {name}" for name, count in _misfits(row).items())
    absent = f"; absent {row['absent']}" if row["absent"] else ""
    backlog = f"; backlog {row['backlog_events']} events" if row["backlog_events"] else ""
    return (
        f"{moment} {row['sequence']} {row['batch']}: {counts or 'nothing'}{absent}{misfits}{backlog} (seconds: {steps})"
    )


def _misfits(row: Mapping[str, Any]) -> dict[str, int]:
    """Published values that did not fit, by column."""
    return dict(json.loads(row["misfits"])) if row["misfits"] else {}


def problem_text(kind: str, path: str, detail: str, **_: object) -> str:
    """A problem as one line, which names its place once."""
    return f"problem: {kind}: {detail}" if path in detail else f"problem: {kind}: {path}: {detail}"


def replicas(delta: DeltaReader) -> list[str]:
    """Replicas that have ever planned a batch."""
    return sorted({replica for replica, _ in sequences(delta)})


def status(delta: DeltaReader, last: int = 10, now: datetime | None = None) -> dict[str, Any]:
    """Rows by table, what waits, and per replica: lag in seconds, watermark, backlog, problems and last batches."""
    now = now or datetime.now(UTC)
    metrics = delta.read("metrics")
    waits = open_rows(delta, "first_seen")
    return {
        "engine": delta.engine,
        "rows": _rows(delta),
        "pending": len(waits),
        "oldest_pending_seconds": max(((now - row["first_seen"]).total_seconds() for row in waits), default=None),
        "replicas": {
            name: _replica(
                metrics.filter(pc.equal(metrics["replica"], name)).to_pylist(),
                [row for row in waits if row["replica"] == name],
                last,
                now,
            )
            for name in replicas(delta)
        },
    }


def _rows(delta: DeltaReader) -> dict[str, int]:
    """Rows by table; of a pipeline of one stream, which has nothing in `primary`, the output by its own name."""
    if (output := output_of(delta.root)) == JOINED:
        return {name: delta.rows(name) for name in _COUNTED}
    return {output if name == JOINED else name: delta.rows(name) for name in _COUNTED if name != "primary"}


def watermark(batch: Mapping[str, Any] | None, waits: Iterable[Mapping[str, Any]]) -> datetime | None:
    """The time before which every event is in its place: the inputs', and the oldest that waits; None: not known."""
    inputs = batch["watermark"] if batch else None
    return inputs and min([inputs, *(row["event_time"] for row in waits)])


def _replica(rows: list[dict[str, Any]], waits: list[dict[str, Any]], last: int, now: datetime) -> dict[str, Any]:
    rows.sort(key=lambda row: row["settled_at"])
    joins = [row for row in rows if row["sequence"] == "join"]
    newest = joins[-1] if joins else None
    return {
        "batches": len(rows),
        "last_batch_seconds_ago": (now - newest["settled_at"]).total_seconds() if newest else None,
        "watermark": watermark(newest, waits),
        "latency_p90": next((row["latency_p90"] for row in reversed(rows) if row["latency_p90"] is not None), None),
        "backlog_events": newest["backlog_events"] if newest else 0,
        "backlog_bytes": newest["backlog_bytes"] if newest else 0,
        "problems": json.loads(newest["problems"]) if newest and newest["problems"] else [],
        "totals": _totals(rows),
        "misfits": dict(sum((Counter(_misfits(row)) for row in rows), Counter())),
        "last": rows[-last:],
    }


def _totals(rows: Iterable[dict[str, Any]]) -> dict[str, int]:
    names = (
        "joined", "repeats", "wasted", "unjoinable", "absent", "expired", "filtered", "quarantined", "conflict_reruns",
    )  # fmt: skip
    rows = list(rows)
    return {name: sum(row.get(name) or 0 for row in rows) for name in names}
