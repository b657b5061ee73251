"""The same sums by Arrow, of a lake whose ids fit into this process: no Spark is started for them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.kernel.arrays import to_numpy
from clickjoin.model.ids import EPOCH, EVENT_KEY, micros_of
from clickjoin.registry.boundary import load_boundary
from clickjoin.retry.pending import waiting_rows

if TYPE_CHECKING:
    from clickjoin.lake.delta_reader import DeltaReader

_TIME = pa.timestamp("us", "UTC")
_KEY = list(EVENT_KEY)
MOST_ROWS = 5_000_000  # of all tables together: some hundred bytes each, for seconds


def is_small(delta: DeltaReader, tables: Sequence[str]) -> bool:
    """Whether some tables hold so few rows that this process counts them."""
    return sum(delta.rows(name) for name in tables) <= MOST_ROWS


def quarantined(delta: DeltaReader) -> dict[str, int]:
    """Bad records by stream; one that was too long for one row counts once."""
    rows = delta.read("quarantine", columns=["stream", "part"])
    whole = rows.filter(pc.equal(pc.fill_null(rows["part"].cast(pa.int64()), 0), 0))
    counted = whole.group_by("stream").aggregate([([], "count_all")])
    return dict(zip(counted["stream"].to_pylist(), counted["count_all"].to_pylist(), strict=True))


def primary_events(delta: DeltaReader) -> tuple[int, int]:
    """Distinct primary events, and their rows."""
    rows = _keys(delta.read("primary", columns=_KEY))
    return int(rows.group_by(_KEY).aggregate([]).num_rows), int(rows.num_rows)


def foreign_events(
    delta: DeltaReader, replicas: Sequence[str], outcomes: Sequence[str], since: datetime, *, by_id: bool
) -> dict[str, int]:
    """Counts as accounts.account has them: accepted, records, one for each outcome, lost, doubled, collected."""
    ids = _by_id(_places(delta, replicas, outcomes), outcomes, load_boundary(delta), by_id=by_id)
    records, outputs = (to_numpy(ids[f"{name}_sum"]) for name in ("records", "outputs"))
    kept = to_numpy(ids["event_time_max"].cast(pa.int64())) >= micros_of(since)
    landed, left = records > 0, np.ones(ids.num_rows, np.bool_)
    counts = {"accepted": int(landed.sum()), "records": int(records.sum())}
    for name in outcomes:  # the first that holds
        there = to_numpy(ids[f"{name}_sum"]) > 0
        counts[name] = int((landed & left & there).sum())
        left &= ~there
    return counts | {
        "lost": int((landed & left).sum()),
        "doubled": int(((outputs > 1) | ((outputs > 0) & ~landed & kept)).sum()),
        "collected": int(((outputs == 1) & ~landed & ~kept).sum()),
    }


def _places(delta: DeltaReader, replicas: Sequence[str], outcomes: Sequence[str]) -> list[tuple[str, pa.Table]]:
    found = [("records", delta.read("foreign", columns=_KEY))]
    for name in outcomes:
        if name == "pending":
            version = delta.version(name)
            found += [(name, rows) for replica in replicas for rows in waiting_rows(delta, version, replica, _KEY)]
        elif name == "forgotten":
            rows = delta.read(name, [("stream", "=", "foreign")], _KEY)
            found.append((name, rows.filter(pc.is_valid(rows["event_id"]))))
        else:
            found.append((name, delta.read(name, columns=_KEY)))
    return [(name, _keys(rows)) for name, rows in found]


def _by_id(
    places: Sequence[tuple[str, pa.Table]], outcomes: Sequence[str], boundary: dict[int, datetime], *, by_id: bool
) -> pa.Table:
    """One row an id: how many rows each place has of it, `outputs` (those that count in joined), its latest time."""
    parts, oldest = [], micros_of(max(boundary.values(), default=EPOCH))
    for name, rows in places:
        counts: dict[str, Any] = {}
        for column in ("records", "outputs", *outcomes):
            here = column == name or (column == "outputs" and name == "joined")
            counts[column] = np.full(rows.num_rows, int(here), np.int64)
        if by_id:  # once its claim was collected, an id may be there again
            counts["outputs"] = counts["outputs"] * (to_numpy(rows["event_time"].cast(pa.int64())) >= oldest)
        for column, values in counts.items():
            rows = rows.append_column(column, pa.array(values))
        parts.append(rows.append_column("at", rows["event_time"]))
    whole = pa.concat_tables(parts)
    grouped = whole.group_by(["event_id"] if by_id else _KEY)
    sums: list[Any] = [(column, "sum") for column in ("records", "outputs", *outcomes)]
    return grouped.aggregate([*sums, ("at", "max")]).rename_columns({"at_max": "event_time_max"})


def taken_up(parts: Sequence[pa.Table], waits: Sequence[pa.Table]) -> tuple[int, int]:
    """Distinct events of some tables of keys, and how many of them are among those that wait."""
    events = pa.concat_tables([_keys(part) for part in parts]).group_by(_KEY).aggregate([])
    waiting = [_keys(part) for part in waits]
    if not waiting or not events.num_rows:
        return int(events.num_rows), 0
    return int(events.num_rows), int(events.join(pa.concat_tables(waiting), _KEY, join_type="left semi").num_rows)


def _keys(rows: pa.Table) -> pa.Table:
    return rows.select(_KEY).cast(pa.schema([("event_id", pa.string()), ("event_time", _TIME)]))
