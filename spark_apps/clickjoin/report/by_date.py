"""Where the events of each date are, by date of event time (UTC): from logs and small tables, without Spark."""

from __future__ import annotations

from collections import defaultdict
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.lake.maintenance import sizes
from clickjoin.model.ids import EVENT_KEY
from clickjoin.retry.pending import open_pending

if TYPE_CHECKING:
    from clickjoin.lake.delta_reader import DeltaReader

# Counted from rows. `landed`: records of the foreign stream, repeats too; `quarantined`: by the day it was quarantined;
# `claimed`: as far back as the registry goes; `forgotten`: foreign events.
TABLES = {
    "landed": "foreign",
    "joined": "joined",
    "pending": "pending",
    "unjoinable": "unjoinable",
    "expired": "expired",
    "filtered": "filtered",
    "quarantined": "quarantine",
    "claimed": "registry",
    "forgotten": "forgotten",
}
# An id is in one of these, but for those of a batch under way; a repeat below the boundary is in `expired` as well.
PLACES = ("joined", "pending", "unjoinable", "expired", "filtered")
Counts = dict[str, int]


def count(delta: DeltaReader, what: str) -> Counts:
    """Rows by date (ISO) for a key of TABLES. What the registry lets in once is counted by rows, the rest by ids."""
    name = TABLES[what]
    if what in ("landed", "joined", "claimed"):
        found: defaultdict[str, int] = defaultdict(int)
        for part, size in sizes(delta, name, delta.table(name).partitions[0]).items():
            found[part[:10]] += size.rows  # a bucket's name begins with its date
        return dict(found)
    if what == "quarantined":
        rows = delta.read(name, columns=["at", "part"])
        return _dates(rows.filter(pc.equal(pc.fill_null(rows["part"], 0), 0))["at"])
    if what == "forgotten":
        rows = delta.read(name, [("stream", "=", "foreign")], list(EVENT_KEY))
        return _dates(_distinct(rows.filter(pc.is_valid(rows["event_id"])))["event_time"])
    if what == "pending":
        return _dates(_distinct(open_pending(delta))["event_time"])
    if what == "expired":
        return _dates(_distinct(delta.read(name, columns=list(EVENT_KEY)))["event_time"])
    return _dates(delta.read(name, columns=["event_time"])["event_time"])


def _distinct(rows: pa.Table) -> pa.Table:
    return rows.group_by(list(EVENT_KEY)).aggregate([])


def _dates(times: pa.ChunkedArray) -> Counts:
    found = pc.value_counts(pc.cast(pc.floor_temporal(times, unit="day"), pa.date32()))
    return {pair["values"].isoformat(): pair["counts"] for pair in found.to_pylist() if pair["values"]}


def states(delta: DeltaReader) -> dict[str, dict[str, Any]]:
    """The newest row of table `dates` by date (ISO), as plain data; `history`: how many rows the date has."""
    found: dict[str, dict[str, Any]] = {}
    for row in sorted(delta.read("dates", [("state", "!=", "held")]).to_pylist(), key=lambda row: row["at"]):
        key = row["date"].isoformat()
        before = found[key]["history"] if key in found else 0
        found[key] = {name: _plain(value) for name, value in row.items()} | {"history": before + 1}
    return found


def calendar(counts: dict[str, Counts], states: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """One entry a date, oldest first: what its tables hold, and what is known of it (`state` null: never closed).

    `accepted`: ids of the date, in whichever place they are, and `missing`: claimed, and in no output, as those of
    a batch under way are for a moment. `landed` counts records, so repeats too.
    """
    dates = sorted({date for part in counts.values() for date in part} | states.keys())
    return [
        {
            "date": day,
            **{name: part.get(day, 0) for name, part in counts.items()},
            "accepted": sum(counts.get(name, {}).get(day, 0) for name in PLACES) + _missing(counts, day),
            "missing": _missing(counts, day),
            "state": states[day]["state"] if day in states else None,
            "close": states.get(day),
        }
        for day in dates
    ]


def _missing(counts: dict[str, Counts], day: str) -> int:
    """Claims without a row, as numbers: which ids they are of, verification says. An event that waits has none."""
    claimed, *there = (
        counts.get(name, {}).get(day, 0) for name in ("claimed", "joined", "filtered", "unjoinable", "forgotten")
    )
    return max(claimed - sum(there), 0)


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime | date) else value
