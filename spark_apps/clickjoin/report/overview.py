"""How a pipeline's replicas fare now and have fared, as plain data for a page."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.model.batch_plan import COUNTS, STEPS
from clickjoin.model.ids import MICROS
from clickjoin.report.history import BACKLOG, LATENCIES, gather, mean

if TYPE_CHECKING:
    from clickjoin.report.history import History

# Hours that a page may ask for, and how wide a bin is then, in seconds.
WINDOWS = {1: 15, 24: 300, 168: 1_800, 720: 7_200, 2_160: 21_600}
_LATELY = timedelta(minutes=15)
_DAY = timedelta(hours=24)
_FINE = 15
_FEWEST = 12  # bins of a chart


def figures(history: History, now: datetime) -> dict[str, dict[str, Any]]:
    """By replica: `last_batch_at`, latency of joins and throughput of 15 minutes, backlog, problems, a day's totals.

    `watermark`: no event before it was unread when the newest join batch was done; null where that is not known.
    `day.accepted`: ids that joins took up, which are records without repeats.
    """
    history.refresh(now - _DAY, now)
    newest = history.newest()
    bins = history.bins(_FINE, now - _LATELY)
    lately = _by_replica(bins)
    joins = _by_replica(bins.filter(pc.equal(bins["sequence"], "join")))
    bins = history.bins(300, now - _DAY)
    day, day_joins = _by_replica(bins), _by_replica(bins.filter(pc.equal(bins["sequence"], "join")))
    names = sorted(set(newest["replica"].to_pylist()) | day.keys())
    found = {name: _figures(_rows_of(newest, name), joins.get(name), day.get(name)) for name in names}
    for name, row in day_joins.items():
        found[name]["day"]["accepted"] = _accepted(row)
    for name, row in lately.items():
        found[name]["joined_per_second"] = round(row["joined"] / _LATELY.total_seconds(), 3)
    return found


def _figures(rows: list[dict[str, Any]], lately: dict[str, Any] | None, day: dict[str, Any] | None) -> dict[str, Any]:
    joins = [row for row in rows if row["sequence"] == "join"]
    newest = joins[0] if joins else None
    latency = next((row for row in joins if row["latency_p90"] is not None), None)
    return {
        "last_batch_at": rows[0]["settled_at"].isoformat() if rows else None,
        "last_join_at": newest["settled_at"].isoformat() if newest else None,
        "watermark": newest["watermark"].isoformat() if newest and newest["watermark"] else None,
        "latency": {name: _recent(lately, latency, name) for name in LATENCIES},
        "joined_per_second": 0.0,
        **{name: newest[name] if newest else None for name in BACKLOG},
        "problems": json.loads(newest["problems"]) if newest and newest["problems"] else [],
        "day": {name: int(day[name]) if day else 0 for name in ("batches", *COUNTS)} | {"accepted": 0},
    }


def _accepted(joins: dict[str, Any]) -> int:
    """Ids that join batches took up for the first time: what they read but the repeats. Retries read those again."""
    return int(joins["events_in"] - joins["repeats"])


def _recent(lately: dict[str, Any] | None, last: dict[str, Any] | None, name: str) -> float | None:
    """A latency of the last minutes; where nothing was joined in them, of the last batch that joined anything."""
    found = mean(lately[f"weighted_{name}"], lately["weight"]) if lately else None
    if found is None and last and last[f"latency_{name}"] is not None:
        return round(float(last[f"latency_{name}"]), 3)
    return found


def _by_replica(bins: pa.Table) -> dict[str, dict[str, Any]]:
    if not bins.num_rows:
        return {}
    whole = bins.set_column(bins.schema.get_field_index("at"), "at", pa.array([0] * bins.num_rows, pa.int64()))
    return {row["replica"]: row for row in gather(whole, 1, ["replica"]).to_pylist()}


def _rows_of(rows: pa.Table, replica: str) -> list[dict[str, Any]]:
    return list(rows.filter(pc.equal(rows["replica"], replica)).slice(0, 50).to_pylist())


def series(history: History, now: datetime, hours: int, replica: str = "") -> dict[str, Any]:
    """Columns by time for charts: `at` (seconds since 1970), a value a bin. Latencies are those of sequence `join`.

    `replica`: only this one; empty: all. A bin without batches has 0 in counts and null in everything else. Where the
    first batch of all is newer than `hours`, the series begins shortly before it. `accepted`: see `figures`.
    """
    width, since = WINDOWS[hours], now - timedelta(hours=hours)
    history.refresh(since, now)
    bins = history.bins(width, since)
    first = _first(history, bins, since, now, width)
    if replica:
        bins = bins.filter(pc.equal(bins["replica"], replica))
    whole = _by_time(gather(bins, width, []))
    joins = _by_time(gather(bins.filter(pc.equal(bins["sequence"], "join")), width, []))
    times = range(first, int(now.timestamp()) + 1, width)
    counted: dict[str, list[Any]] = {n: [whole[t][n] if t in whole else 0 for t in times] for n in ("batches", *COUNTS)}
    found: dict[str, Any] = {"hours": hours, "seconds": width, "at": list(times), **counted}
    for name in LATENCIES:
        found[name] = [mean(joins[t][f"weighted_{name}"], joins[t]["weight"]) if t in joins else None for t in times]
    found["accepted"] = [_accepted(joins[t]) if t in joins else 0 for t in times]
    found["worst"] = [_round(joins[t]["worst"]) if t in joins else None for t in times]
    found["backlog_events"] = [joins[t]["backlog_events"] if t in joins else None for t in times]
    for step in STEPS:
        found[step] = [mean(joins[t][f"seconds_{step}"], joins[t]["batches"]) if t in joins else None for t in times]
    return found


def _first(history: History, bins: pa.Table, since: datetime, now: datetime, width: int) -> int:
    """The bin that a chart begins with: one before the first batch of all, and a few at the least."""
    begin, end = (int(at.timestamp()) // width * width for at in (since, now))
    if not bins.num_rows or history.begins_before(since):
        return begin
    return max(begin, min(int(pc.min(bins["at"]).as_py()) // MICROS - width, end - _FEWEST * width))


def _by_time(bins: pa.Table) -> dict[int, dict[str, Any]]:
    return {row["at"] // MICROS: row for row in bins.to_pylist()}


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def recent(history: History, now: datetime, most: int) -> list[dict[str, Any]]:
    """The newest batches of all replicas and sequences, newest first: rows of `metrics`, times as text."""
    history.refresh(now - _DAY, now)
    rows = history.newest(most).to_pylist()
    for row in rows:
        row["problems"] = json.loads(row["problems"]) if row["problems"] else []
        row |= {name: row[name].isoformat() for name in ("planned_at", "settled_at", "watermark") if row[name]}
    return list(rows)
