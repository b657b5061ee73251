"""Table `forgotten`: which events (and bad records) are, by stream. It holds no record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.kernel.forgotten import Forgotten
from clickjoin.model.errors import LakeError
from clickjoin.model.ids import EVENT_KEY, bucket_of, micros_of, moment

if TYPE_CHECKING:
    from clickjoin.engines.tables_port import Tables
    from clickjoin.lake.delta_reader import DeltaReader

TABLE = "forgotten"
STREAMS = ("primary", "foreign")
Key = tuple[str, int]  # id, and time in microseconds


@dataclass(frozen=True)
class Events:
    """Events by stream, and what bad records are known by (kernel.forgotten.digest)."""

    keys: Mapping[str, frozenset[Key]] = field(default_factory=dict)
    digests: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def of(self, stream: str) -> frozenset[Key]:
        """The events of a stream."""
        return self.keys.get(stream, frozenset())

    def __bool__(self) -> bool:
        """Whether there is any."""
        return any(self.keys.values()) or any(self.digests.values())

    def __or__(self, other: Events) -> Events:
        """Those of both."""
        return Events(
            {name: self.of(name) | other.of(name) for name in STREAMS},
            {name: self._digests(name) | other._digests(name) for name in STREAMS},
        )

    def __sub__(self, other: Events) -> Events:
        """Those that are not of the other."""
        return Events(
            {name: self.of(name) - other.of(name) for name in STREAMS},
            {name: self._digests(name) - other._digests(name) for name in STREAMS},
        )

    def within(self, low: datetime, high: datetime) -> Events:
        """Those of a range of event time, and all bad records."""
        first, last = micros_of(low), micros_of(high)
        keys = {name: frozenset(key for key in self.of(name) if first <= key[1] < last) for name in STREAMS}
        return Events(keys, self.digests)

    def _digests(self, stream: str) -> frozenset[str]:
        return self.digests.get(stream, frozenset())


def is_any(delta: DeltaReader) -> bool:
    """Whether anything was ever forgotten: a look at the log."""
    return delta.rows(TABLE) > 0


def forgotten(delta: DeltaReader) -> Events:
    """All that was forgotten."""
    if not is_any(delta):
        return Events()
    keys: dict[str, set[Key]] = {name: set() for name in STREAMS}
    digests: dict[str, set[str]] = {name: set() for name in STREAMS}
    for row in _listed(delta).to_pylist():
        if row["digest"]:
            digests[row["stream"]].add(row["digest"])
        else:
            keys[row["stream"]].add((row["event_id"], micros_of(row["event_time"])))
    return Events(
        {name: frozenset(some) for name, some in keys.items()},
        {name: frozenset(some) for name, some in digests.items()},
    )


def _listed(delta: DeltaReader) -> pa.Table:
    try:
        return delta.read(TABLE, columns=["stream", *EVENT_KEY, "digest"])
    except (OSError, pa.ArrowInvalid) as error:
        raise LakeError(
            f"{delta.path(TABLE)}: the list of what was forgotten cannot be read ({str(error).splitlines()[0][:300]})",
            remedy="Restore the table from a backup, and forget again what was forgotten since: without it, records "
            "that are read again come back",
        ) from error


def not_to_land(delta: DeltaReader, *, by_id: bool = False) -> dict[str, Forgotten]:
    """What landing has to leave out, by stream; empty where nothing was ever forgotten. `by_id`: see Forgotten."""
    if not is_any(delta):
        return {}
    rows = _listed(delta)
    events = rows.filter(pc.is_null(rows["digest"]))
    found = {}
    for name in STREAMS:
        own, bad = (part.filter(pc.equal(part["stream"], name)) for part in (events, rows))
        digests = frozenset(bad["digest"].drop_null().to_pylist())
        keys = own.select(list(EVENT_KEY)).cast(Forgotten().keys.schema)
        found[name] = Forgotten(keys, digests, by_id)
    return found


def add(delta: Tables, events: Events, request: str, now: datetime, bucket_seconds: int) -> None:
    """Put events on the list. From here on no batch that is planned lands a record of theirs."""
    named: list[dict[str, Any]] = [
        {"stream": name, "event_id": key, "event_time": moment(at), "bucket": bucket_of(at, bucket_seconds)}
        for name in STREAMS
        for key, at in sorted(events.of(name))
    ]
    bad: list[dict[str, Any]] = [
        {"stream": name, "digest": one} for name in STREAMS for one in sorted(events.digests.get(name, ()))
    ]
    delta.append(TABLE, [row | {"request": request, "at": now} for row in [*named, *bad]])


def as_arrow(keys: frozenset[Key]) -> pa.Table:
    """Keys as columns event_id and event_time."""
    schema = Forgotten().keys.schema
    rows = [{"event_id": name, "event_time": moment(at)} for name, at in sorted(keys)]
    return pa.Table.from_pylist(rows, schema=schema)
