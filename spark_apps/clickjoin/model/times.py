"""Times as people write them."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from typing import Any

from clickjoin.model.errors import ConfigError

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
