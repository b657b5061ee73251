"""Times as people write them."""

from __future__ import annotations

from datetime import UTC, date, datetime

from clickjoin.model.errors import ConfigError


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
