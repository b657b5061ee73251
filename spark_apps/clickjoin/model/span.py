"""Times as people write them: durations, moments, dates, ranges of event time and of dates.

All in UTC; no clock is read here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from clickjoin.model.errors import ConfigError
from clickjoin.model.extent import Extent, spanning, timestamp

_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_LONGEST = 100 * 365 * 86400.0


def seconds_of(value: Any) -> float:
    """A duration such as `10s`, `2h`, `3d`, in seconds. Errors: ValueError."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|w)\s*", value) if isinstance(value, str) else None
    if not found:
        raise ValueError(f"{value!r} is not a duration; write a number and ms, s, m, h, d or w, such as 10s or 3d")
    seconds = float(found.group(1)) * _UNITS[found.group(2)]
    if seconds > _LONGEST:
        raise ValueError(f"{value!r} is longer than a hundred years; write a shorter one")
    return seconds


def span_text(seconds: float) -> str:
    """A duration as people write it: `112h`, `3d`."""
    unit = next((unit for unit in ("d", "h", "m", "s") if seconds >= _UNITS[unit] and not seconds % _UNITS[unit]), "s")
    return f"{seconds / _UNITS[unit]:g}{unit}"


def parse_moment(text: str) -> datetime:
    """An ISO 8601 time; one without an offset is in UTC. Errors: ConfigError."""
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise ConfigError(f"{text!r} is no time", remedy="Write it as 2026-03-01 or 2026-03-01T12:00Z") from error
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def parse_date(text: str, field: str = "") -> date:
    """A date as `2026-03-01`; `field` is where it was given. Errors: ConfigError."""
    try:
        return date.fromisoformat(text.strip())
    except ValueError as error:
        place = f"{field}: " if field else ""
        raise ConfigError(f"{place}{text!r} is no date", remedy="Write it as 2026-03-01") from error


MOST_DAYS = 3660


@dataclass(frozen=True)
class Span:
    """A range of event time, from `low` to before `high`."""

    low: datetime
    high: datetime

    def extent(self, bucket_seconds: int) -> Extent:
        """The range as what a read can be narrowed to."""
        return spanning(1, self.low, self.high - timedelta(microseconds=1), bucket_seconds)

    def sql(self, column: str = "event_time") -> str:
        """Whether a time lies in it, as Spark SQL."""
        return f"{column} >= {timestamp(self.low)} AND {column} < {timestamp(self.high)}"


@dataclass(frozen=True, order=True)
class Day:
    """One date of the foreign events' own time, UTC."""

    date: date

    def __str__(self) -> str:
        return self.date.isoformat()

    @property
    def low(self) -> datetime:
        """Its first moment."""
        return datetime(self.date.year, self.date.month, self.date.day, tzinfo=UTC)

    @property
    def high(self) -> datetime:
        """The first moment after it."""
        return self.low + timedelta(days=1)

    @property
    def span(self) -> Span:
        """It as a range of event time."""
        return Span(self.low, self.high)


def parse(text: str, field: str = "date") -> Day:
    """The day that `YYYY-MM-DD` names. Errors: ConfigError."""
    return Day(parse_date(text, field))


def days(first: str, last: str, now: datetime) -> list[Day]:
    """All days from `first` to `last`, both included. Errors: ConfigError for a range that makes no sense."""
    low, high = parse(first, "from"), parse(last, "to")
    if high < low:
        raise ConfigError(f"from {low} is after to {high}", remedy="Exchange them")
    if high.low > now:
        raise ConfigError(
            f"to: {high} lies in the future (it is {now:%Y-%m-%d %H:%M} UTC)", remedy="End at a date that has begun"
        )
    count = (high.date - low.date).days + 1
    if count > MOST_DAYS:
        raise ConfigError(f"from {low} to {high} are {count} dates", remedy=f"Take {MOST_DAYS} at most at a time")
    return [Day(low.date + timedelta(days=nth)) for nth in range(count)]
