"""Ranges of event time, dates, and ranges of dates. All in UTC; no clock is read here."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from clickjoin.model.errors import ConfigError
from clickjoin.model.extent import Extent, spanning, timestamp
from clickjoin.model.times import parse_date

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
