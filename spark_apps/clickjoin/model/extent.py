"""Which part of a table a batch touches, as literals: the only terms that prune files and keep claims apart."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from clickjoin.model.ids import MICROS, bucket_at

MINUTE = 60 * MICROS
_MAX_MINUTES = 20_000
_MAX_LITERALS = 500  # a longer list of buckets costs more to analyse than a range costs in files


def timestamp(moment: datetime) -> str:
    """A moment as a Spark SQL literal: a literal, unlike a function call, prunes files."""
    return f"TIMESTAMP '{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}+00:00'"


def text(value: str) -> str:
    """A text as a Spark SQL literal."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


@dataclass(frozen=True)
class Extent:
    """Buckets and the closed range of event times that some rows lie in; `rows` says how many there are.

    `minutes`: which minutes since 1970 they lie in; empty where that is not known, or where they are too many.
    """

    rows: int
    buckets: tuple[str, ...] = ()
    low: datetime | None = None
    high: datetime | None = None
    minutes: tuple[int, ...] = ()

    @property
    def wide(self) -> bool:
        """Whether the buckets are too many to name each: then all between the first and the last are meant."""
        return len(self.buckets) > _MAX_LITERALS

    @property
    def dates(self) -> tuple[date, ...]:
        """Dates (UTC) that the buckets lie in; the first and the last, where all between are meant."""
        return tuple(sorted({date.fromisoformat(name[:10]) for name in self.buckets}))

    def sql(self, alias: str = "", shards: Iterable[int] | None = None) -> str:
        """The extent as terms over columns `bucket`, `event_time` and, if asked for, `shard`."""
        if not self.rows or self.low is None or self.high is None:
            return "FALSE"
        dot = f"{alias}." if alias else ""
        names = sorted(self.buckets)
        if self.wide:
            where = f"{dot}bucket BETWEEN '{names[0]}' AND '{names[-1]}'"
        else:
            where = f"{dot}bucket IN ({', '.join(repr(name) for name in names)})"
        where += f" AND {dot}event_time BETWEEN {timestamp(self.low)} AND {timestamp(self.high)}"
        if shards is not None:
            where += f" AND {dot}shard IN ({', '.join(str(shard) for shard in sorted(shards))})"
        return where


def spanning(rows: int, low: datetime, high: datetime, width_seconds: int) -> Extent:
    """The extent of all buckets between two moments."""
    step, moment = timedelta(seconds=width_seconds), low
    names: list[str] = []
    while moment <= high and len(names) <= _MAX_LITERALS:
        names.append(bucket_at(moment, width_seconds))
        moment += step
    names.append(bucket_at(high, width_seconds))
    return Extent(rows, tuple(dict.fromkeys(names)), low, high)


def merge(extents: Iterable[Extent]) -> Extent:
    """The smallest extent that holds all of these."""
    held = [extent for extent in extents if extent.rows and extent.low and extent.high]
    if not held:
        return Extent(0)
    return Extent(
        sum(extent.rows for extent in held),
        tuple(sorted({name for extent in held for name in extent.buckets})),
        min(extent.low for extent in held if extent.low),
        max(extent.high for extent in held if extent.high),
        minutes_of([m for extent in held for m in extent.minutes] if all(extent.minutes for extent in held) else ()),
    )


def minutes_of(found: Iterable[int]) -> tuple[int, ...]:
    """Minutes in order, each once; none where they are too many to be worth the looking."""
    names = sorted(set(found))
    return tuple(names) if len(names) <= _MAX_MINUTES else ()
