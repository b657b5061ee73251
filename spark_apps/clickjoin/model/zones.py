"""The rules of a time zone, as one word: an event's identity hangs on them; and how a wrong zone shows."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

_FIRST, _LAST = datetime(1970, 1, 1, tzinfo=UTC), datetime(2038, 1, 1, tzinfo=UTC)
_STEP = timedelta(days=7)  # no clock was put forward and back within a week
_HALF_HOUR, _NEAR = 1800, 300  # seconds: what zones differ by, and how far from it the quickest clicks may lie
_LATEST, _MOST = 0.95, 0.75


def hours_off(gaps: Sequence[float]) -> float:
    """By how many hours events lie after those that they caused, where a wrong zone explains it; else 0.

    `gaps`: seconds of each. The longest ones are about whole or half hours: a cause lies just before its effect. Most
    are at most half an hour shorter.
    """
    ordered = sorted(gaps)
    latest = ordered[int(_LATEST * (len(ordered) - 1))] if ordered else 0
    offset = round(latest / _HALF_HOUR) * _HALF_HOUR
    alike = sum(offset - _HALF_HOUR - _NEAR <= gap <= offset + _NEAR for gap in ordered)
    if offset < _HALF_HOUR or abs(latest - offset) > _NEAR or alike < _MOST * len(ordered):
        return 0
    return offset / 3600


def rules_of(zone: str) -> str:
    """A digest of when a zone's clocks change, to the second, and what they show from then on (1970 to 2037).

    The same whatever package or file the rules are read from. Takes some ms, and nothing is kept: that would
    travel to executors, whose own rules are asked for. Errors: KeyError, ValueError, OSError of no zone.
    """
    own, digest = ZoneInfo(zone), hashlib.blake2b(digest_size=8)
    moment, shown = _FIRST, _offset(_FIRST, own)
    digest.update(f"{shown};".encode())
    while moment < _LAST:
        later = moment + _STEP
        if (next_ := _offset(later, own)) != shown:
            digest.update(f"{_change(moment, later, own).timestamp():.0f} {next_};".encode())
        moment, shown = later, next_
    return digest.hexdigest()


def _change(low: datetime, high: datetime, zone: ZoneInfo) -> datetime:
    """The first second between two moments at which clocks show what they show at the second."""
    shown = _offset(high, zone)
    while high - low > timedelta(seconds=1):
        middle = low + timedelta(seconds=(high - low) // timedelta(seconds=2))
        low, high = (low, middle) if _offset(middle, zone) == shown else (middle, high)
    return high


def _offset(moment: datetime, zone: ZoneInfo) -> int:
    offset = moment.astimezone(zone).utcoffset() or timedelta()
    return round(offset.total_seconds())
