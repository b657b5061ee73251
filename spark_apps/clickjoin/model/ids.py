"""Event ids and their time, buckets and shards: the pure rules that everything else rests on."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Literal, NamedTuple

from clickjoin.model.field_path import TypedColumn
from clickjoin.model.where import Where

MICROS = 1_000_000
_LATEST, _LONGEST_JUDGED = 253_370_764_800 * MICROS, 64 << 20  # the year 9999; bytes
ISO = "iso"  # stands for ISO 8601 among the forms of a time
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# What an event is known by. The same id at two times is two events.
EVENT_KEY = ("event_id", "event_time")


def claims_order(*, by_id: bool) -> str:
    """The column that claims are sorted by in their files: what they are looked up by first."""
    return "event_id" if by_id else "event_time"


_PHOTON_ID = re.compile(r"[^:]+:[0-9]+:([0-9]{1,18})\Z")
_UUID7 = re.compile(r"([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\Z", re.IGNORECASE)


def embedded_micros(event_id: str) -> int | None:
    """Event time inside `ServerIP:ProcessId:TimestampMicros`, in microseconds since 1970; None if it has none.

    Source: Photon, section 3.1.
    """
    found = _PHOTON_ID.match(event_id)
    return int(found.group(1)) if found else None


def uuid7_micros(event_id: str) -> int | None:
    """Event time inside a UUIDv7, in microseconds since 1970 (its own unit is milliseconds); None if it is none."""
    found = _UUID7.match(event_id)
    return int(found.group(1) + found.group(2), 16) * 1000 if found else None


def bucket_of(event_micros: int, width_seconds: int) -> str:
    """Name of the slice of event time that an event lies in, such as `2019-11-24T0300Z` (the bucket's start, UTC).

    Names sort as the times do, and hold no character that a path would have to escape.
    """
    start = event_micros // (width_seconds * MICROS) * width_seconds
    return datetime.fromtimestamp(start, UTC).strftime("%Y-%m-%dT%H%MZ")


def bucket_at(moment: datetime, width_seconds: float) -> str:
    """Name of the slice of event time that a moment lies in."""
    return bucket_of(int(moment.timestamp() * MICROS), int(width_seconds))


def bucket_start(name: str) -> datetime:
    """Where the slice of event time begins that a bucket's name stands for."""
    return datetime.strptime(name, "%Y-%m-%dT%H%MZ").replace(tzinfo=UTC)


def moment(micros: int) -> datetime:
    """Microseconds since 1970 as a datetime in UTC."""
    return EPOCH + timedelta(microseconds=micros)


def micros_of(moment: datetime) -> int:
    """A datetime as microseconds since 1970."""
    return (moment - EPOCH) // timedelta(microseconds=1)


def crc_of(event_id: str) -> int:
    """The hash under every shard number: CRC-32 of the id's UTF-8 bytes, the same in Python and in Spark SQL."""
    return zlib.crc32(event_id.encode())


# Of joins by a key and time: records of one id and key no further apart are one primary event, at the earliest of their
# times; microseconds.
COPIES_WITHIN = 3600 * MICROS


class Around(NamedTuple):
    """How long before its event, and after it, a primary event can lie whose time is not known; microseconds.

    `pick`: `last` or `first` of those with the event's key, or `all`: the last, and beside it as many as `limit`; empty
    where the event names one by its id. `prefer`: one that is preferred goes before all that are not.
    """

    back: int
    ahead: int
    pick: str = ""
    prefer: bool = False
    limit: int = 0


@dataclass(frozen=True)
class TimeForm:
    """How a time is written: directives of strptime or `iso`, first one first, and the time zone it is in (IANA name).

    `rules`: those of the zone where this was made (model.zones); empty for whatever they are. `more`: columns whose
    texts follow that of the time's own, a blank before each.
    """

    formats: tuple[str, ...]
    zone: str
    rules: str = ""
    more: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The forms, for people."""
        return "the form " + " or ".join("ISO 8601" if form == ISO else form for form in self.formats)


class TypeHints(NamedTuple):
    """Columns whose texts do not say what they are: times that name no zone, though a Z is behind them; decimals."""

    bare: frozenset[str] = frozenset()
    decimals: frozenset[str] = frozenset()

    def without_times(self) -> TypeHints:
        """The same where times are read as UTC, whatever their type."""
        return self._replace(bare=frozenset())


@dataclass(frozen=True)
class RecordSpec:
    """Where a record of one stream keeps its id and times, and what is too old, too new or too long to be true.

    Times are in microseconds since 1970, lengths in bytes. An id is made of the values of its columns. `event_time` and
    `primary_time` are `embedded`, `uuid7` or the name of a column, and the forms say how its text is written if not as
    ISO 8601; `primary_time` is None where the primary event is only known to lie within a time range.
    `typed`: columns of the output whose values have to fit their types. `records`: keys to an array in each line whose
    elements are the records. `texts`: keys to fields of a record, or around that array, whose text is JSON.
    `where`: which records are the stream's; None where all are. `bare_times`: times of Parquet that name no zone are in
    that of their form. `key`: `primary_id` are no columns of an id, but of the key that both streams are matched by:
    `all` of them, or the `first` that is set; a record without it has an empty one.
    """

    event_id: tuple[str, ...]
    event_time: str
    primary_id: tuple[str, ...]
    primary_time: str | None
    earliest_micros: int
    latest_micros: int
    max_record: int
    event_form: TimeForm | None = None
    primary_form: TimeForm | None = None
    typed: tuple[TypedColumn, ...] = ()
    records: tuple[str, ...] = ()
    texts: tuple[tuple[str, ...], ...] = ()
    where: Where | None = None
    bare_times: bool = False
    key: Literal["", "all", "first"] = ""

    def of_any(self) -> RecordSpec:
        """The same for whatever lies in a record's place, also of another stream."""
        return replace(self.without_limits(), where=None)

    def without_limits(self) -> RecordSpec:
        """The same for a record that was judged by other limits, which may have been raised or lowered since."""
        longest = max(self.max_record, _LONGEST_JUDGED)
        return replace(self, earliest_micros=0, latest_micros=_LATEST, max_record=longest, typed=())
