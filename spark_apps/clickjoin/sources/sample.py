"""What a look at some records of a stream shows: how many are good, why others are not, what fields they have."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from clickjoin.kernel.parse.lines import PASSED
from clickjoin.kernel.typed_columns.by_line import leaves
from clickjoin.model.field_path import path_text
from clickjoin.model.ids import micros_of

SAMPLE_RECORDS = 1_000
SAMPLE_BYTES = 1_000_000
ELEMENTS = 3  # of an array: as many are looked at


@dataclass(frozen=True)
class BadRecords:
    """Records with one reason: how many, and of the first one the detail, the path and the offset."""

    reason: str
    count: int
    detail: str
    path: str
    offset: int


class Key(NamedTuple):
    """Ids and times of a good record, microseconds since 1970; None where it has none."""

    event_id: str
    event_time: int
    primary_id: str | None
    primary_time: int | None


@dataclass(frozen=True)
class Sample:
    """How many records were read and how many are good, the paths of the values that any has, and what is wrong.

    `bad`: most frequent reason first; `keys`: of the good ones; `records`: some of those, as JSON text. `passed`: how
    many more records no stream of the log takes. `unread`: files whose records cannot be read at all, and why.
    """

    read: int
    good: int
    fields: tuple[str, ...]
    bad: tuple[BadRecords, ...]
    keys: tuple[Key, ...]
    records: tuple[str, ...] = ()
    passed: int = 0
    unread: tuple[str, ...] = ()


def sample_of(rows: Sequence[Mapping[str, Any]], more_fields: Sequence[str] = ()) -> Sample:
    """Sum up records, columns as RECORDS_DDL."""
    passed = sum(int(row["detail"]) for row in rows if row["reason"] == PASSED)
    rows = [row for row in rows if row["reason"] != PASSED]
    fields = dict.fromkeys((*(name for row in _some(rows) for name in _fields(row)), *more_fields))
    good = [row for row in rows if row["reason"] is None]
    records = tuple(row["payload"] for row in _some(good))
    keys = tuple(_key(row) for row in good)
    return Sample(len(rows), len(good), tuple(fields), _bad(rows), keys, records, passed)


def _some(rows: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """At most SAMPLE_RECORDS, evenly from all: fields may come and go from file to file."""
    return rows[:: -(-len(rows) // SAMPLE_RECORDS) or 1]


def _bad(rows: Sequence[Mapping[str, Any]]) -> tuple[BadRecords, ...]:
    found: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        if row["reason"] is not None:
            found.setdefault(row["reason"], []).append(row)
    by_count = sorted(found.items(), key=lambda item: -len(item[1]))
    return tuple(
        BadRecords(reason, len(some), some[0]["detail"], some[0]["path"], some[0]["offset"])
        for reason, some in by_count
    )


def _key(row: Mapping[str, Any]) -> Key:
    time = row["primary_time"]
    return Key(row["event_id"], micros_of(row["event_time"]), row["primary_id"], micros_of(time) if time else None)


def _fields(row: Mapping[str, Any]) -> Sequence[str]:
    text = row["payload"] if row["reason"] is None else row["raw"]
    try:
        found = json.loads(text) if text else None
    except (ValueError, RecursionError):
        return ()
    return [path_text(path) for path, _ in leaves(found, elements=ELEMENTS)] if isinstance(found, dict) else ()
