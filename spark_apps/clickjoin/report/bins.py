"""Batches gathered into bins of time: counts are added up, latencies weighted by the events that they are of."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.model.batch_plan import COUNTS, STEPS
from clickjoin.model.ids import MICROS

LATENCIES = ("p50", "p90", "p99")
BACKLOG = ("backlog_events", "backlog_bytes")
KEYS = ("replica", "sequence")
RAW = (
    "batch", "planned_at", "settled_at", *COUNTS, *(f"latency_{name}" for name in LATENCIES),
    *(f"seconds_{name}" for name in STEPS), *BACKLOG, "problems", "watermark",
)  # fmt: skip
_SUMS = ("batches", *COUNTS, "weight", *(f"weighted_{name}" for name in LATENCIES), *(f"seconds_{s}" for s in STEPS))
_MAXIMA = ("worst", *BACKLOG)


def prepare(rows: pa.Table) -> pa.Table:
    """Rows of `metrics` (RAW and KEYS) as what `gather` takes: `at` in microseconds, sums and what they weigh."""
    number = pc.cast(rows["settled_at"], pa.int64())
    joined = pc.cast(pc.fill_null(rows["joined"], 0), pa.float64())
    weight = pc.if_else(pc.is_valid(rows["latency_p50"]), joined, 0.0)
    columns = {"at": number, **{key: rows[key] for key in KEYS}, "batches": pa.array([1] * rows.num_rows, pa.int64())}
    columns |= {name: pc.fill_null(rows[name], 0) for name in (*COUNTS, *(f"seconds_{step}" for step in STEPS))}
    columns["weight"] = weight
    for name in LATENCIES:
        columns[f"weighted_{name}"] = pc.multiply(pc.fill_null(rows[f"latency_{name}"], 0.0), weight)
    columns["worst"] = rows["latency_p99"]
    columns |= {name: rows[name] for name in BACKLOG}
    return pa.table(columns)


def gather(prepared: pa.Table, seconds: int, keys: Sequence[str] = KEYS) -> pa.Table:
    """Bins of so many seconds, by `keys`: the same columns, so that bins can be gathered into wider ones."""
    width = pa.scalar(seconds * MICROS, pa.int64())
    bins = pc.multiply(pc.divide(prepared["at"], width), width)
    rows = prepared.set_column(prepared.schema.get_field_index("at"), "at", bins)
    sums, most = [(name, "sum") for name in _SUMS], [(name, "max") for name in _MAXIMA]
    found = rows.group_by(["at", *keys]).aggregate([*sums, *most])
    names = {f"{name}_{how}": name for name, how in (*sums, *most)}
    found = found.rename_columns([names.get(name, name) for name in found.schema.names])
    return found.select([name for name in prepared.schema.names if name in found.schema.names])


def mean(total: float | None, weight: float | None) -> float | None:
    """A weighted mean, to milliseconds; None where nothing weighs."""
    return round(total / weight, 3) if weight and total is not None else None
