"""What traffic to make: every option, its unit and its limits."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from clickjoin.model.errors import ConfigError

HOUR = 3600.0
_NOT_NEGATIVE = ("rate", "zipf", "click_spread", "disorder", "late_seconds")
_FRACTIONS = ("duplicates", "late", "orphans", "broken")


@dataclass(frozen=True)
class Traffic:
    """Options of the generator. Times in seconds, fractions from 0 to 1; `broken` and `duplicates` are extra lines.

    Errors: ConfigError for values that make no traffic.
    """

    clicks: int = 10_000
    queries: int = 4_000
    duration: float | None = None  # of event time; default an hour, or what the rate makes of it in live mode
    start: datetime | None = None  # first event time; default: so that the last event has just happened
    rate: float = 0.0  # queries and clicks a second of real time; 0: as fast as possible
    zipf: float = 1.0  # exponent of clicks per query; 0: all queries alike
    click_delay: float = 10.0  # median of a lognormal from query to click
    click_spread: float = 1.0  # its sigma
    click_delay_max: float = 600.0
    disorder: float = 0.0  # a line is written up to this much after its event
    duplicates: float = 0.006  # of the events of each stream, written twice
    late: float = 0.0  # of the queries, whose line is written late
    late_seconds: float = 30.0
    orphans: float = 0.0  # of the clicks, that name a query which does not exist
    broken: float = 0.0  # damaged copies of lines, by the events of each stream
    payload: int = 64  # bytes of filling in each record
    files: int = 4  # of each stream
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        limits = {
            "queries": self.queries >= 1, "clicks": self.clicks >= 0, "files": self.files >= 1, "seed": self.seed >= 0,
            "payload": 0 <= self.payload <= 1_000_000, "duration": self.duration is None or self.duration > 0,
            "click_delay": 0 < self.click_delay <= self.click_delay_max,
        }  # fmt: skip
        limits |= {name: getattr(self, name) >= 0 for name in _NOT_NEGATIVE}
        limits |= {name: 0 <= getattr(self, name) <= 1 for name in _FRACTIONS}
        wrong = [f"{name} ({getattr(self, name)})" for name, holds in limits.items() if not holds]
        if wrong:
            raise ConfigError(f"generate: out of range: {', '.join(wrong)}", remedy="See `clickjoin generate --help`")
        if self.live and self.duration is not None:
            raise ConfigError("generate: in live mode the duration follows from the rate",
                              remedy="Leave out duration, or give a start to replay past traffic")  # fmt: skip

    @property
    def live(self) -> bool:
        """Whether an id's time is the moment of its writing."""
        return self.rate > 0 and self.start is None

    @property
    def seconds(self) -> float:
        """Length of event time."""
        return (self.clicks + self.queries) / self.rate if self.live else self.duration or HOUR

    def begins(self, now: datetime) -> datetime:
        """First event time, where events do not happen as they are written: none may lie after `now`."""
        if self.start is None:
            return datetime.fromtimestamp(now.timestamp() - self.seconds - self.click_delay_max, UTC)
        return self.start if self.start.tzinfo else self.start.replace(tzinfo=UTC)
