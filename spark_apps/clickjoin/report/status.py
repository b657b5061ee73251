"""How a pipeline stands, from its logs, its small tables and what its sources hold now: no Spark needed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from clickjoin.dispatcher.journal import JournalReader, sequences
from clickjoin.model.batch_plan import COUNTS, STEPS
from clickjoin.model.names import RAW
from clickjoin.model.places import JOINED, output_of
from clickjoin.model.split import Budget, SourcePlan
from clickjoin.retry.pending import open_pending, open_rows
from clickjoin.sources.open import open_source

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.lake.delta_reader import DeltaReader

_COUNTED = ("primary", "foreign", "registry", "joined", "unjoinable", "expired", "filtered", "quarantine")


def batch_text(row: Mapping[str, Any], moment: str) -> str:
    """A batch's row of table `metrics` as one line; `moment` is when, as text."""
    counts = ", ".join(f"{name.replace('_', ' ')} {row[name]}" for name in COUNTS if row.get(name))
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
        "joined", "repeats", "wasted", "unjoinable", "absent", "expired", "filtered", "quarantined", "passed_over",
        "conflict_reruns",
    )  # fmt: skip
    rows = list(rows)
    return {name: sum(row.get(name) or 0 for row in rows) for name in names}


def backlog(pipeline: Pipeline, delta: DeltaReader, replica: str) -> dict[str, Any]:
    """`backlog_bytes`, `backlog_events` (estimated) and `problems` of all streams, as of now; `inputs`: the first two
    by stream, and `lag` by partition, where a source counts it; and the batch that is planned and not settled.

    A replica of raw logs has none: its backfill reads them to their end, and nobody else knows where they are.
    """
    state = JournalReader(delta, pipeline.pipeline, replica, "join").load()
    whole: dict[str, Any] = {"backlog_events": 0, "backlog_bytes": 0, "problems": [], "inputs": {}}
    whole["unsettled_batch"] = state.unsettled.number if state.unsettled else None
    for item in () if replica.startswith(RAW) else pipeline.inputs:
        source = open_source(item.source, keep=False)
        plan = source.plan(state.offsets.get(item.name, {}), Budget(1, 1))
        found = {
            "backlog_events": plan.backlog_events + sum(split.events for split in plan.splits),
            "backlog_bytes": plan.backlog_bytes + sum(split.bytes for split in plan.splits),
        }
        whole["inputs"][item.name] = found | ({"lag": _lag(plan)} if plan.lag else {})
        whole |= {name: whole[name] + count for name, count in found.items()}
        whole["problems"] += [asdict(problem) for problem in plan.problems]
    return whole


def _lag(plan: SourcePlan) -> dict[str, int]:
    """How many records of each partition are not planned yet, those of this look among them."""
    looked = {split.path: split.events for split in plan.splits}
    return {path: left + looked.get(path, 0) for path, left in sorted(plan.lag.items())}


def waiting(delta: DeltaReader) -> dict[str, dict[str, Any]]:
    """By replica: `pending`, how many events wait for their primary, and `oldest_pending`, the least of their times."""
    found = open_pending(delta).group_by("replica").aggregate([("event_time", "count"), ("event_time", "min")])
    return {
        row["replica"]: {"pending": row["event_time_count"], "oldest_pending": row["event_time_min"].isoformat()}
        for row in found.to_pylist()
    }
