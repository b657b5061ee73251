"""What a column of a log looks like: an id, a time in some form, or a value of some type."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import pyarrow as pa

from clickjoin.kernel.arrays import text_array
from clickjoin.kernel.parse.arrow_json import EXACT
from clickjoin.kernel.parse.times import micros_by, micros_of
from clickjoin.kernel.typed_columns.by_line import common_type
from clickjoin.model.ids import MICROS, TimeForm, embedded_micros, uuid7_micros

FORMS = (
    "%d/%m/%Y %H:%M:%S", "%m/%d/%Y %H:%M:%S", "%d.%m.%Y %H:%M:%S", "%Y/%m/%d %H:%M:%S", "%d-%m-%Y %H:%M:%S",
    "%d/%m/%Y %H:%M:%S.%f", "%m/%d/%Y %H:%M:%S.%f", "%d/%m/%Y %H:%M", "%m/%d/%Y %H:%M", "%d.%m.%Y %H:%M",
    "%m/%d/%Y %I:%M:%S %p", "%d/%b/%Y:%H:%M:%S %z", "%d/%b/%Y:%H:%M:%S", "%a, %d %b %Y %H:%M:%S %z",
    "%a, %d %b %Y %H:%M:%S GMT", "%a %b %d %H:%M:%S %Y", "%b %d, %Y %H:%M:%S", "%d %b %Y %H:%M:%S", "%Y%m%d%H%M%S",
    "%Y%m%dT%H%M%SZ",
)  # fmt: skip
_EARLIEST, _LATEST = (round(datetime(year, 1, 1, tzinfo=UTC).timestamp() * MICROS) for year in (2000, 2100))
_OF_LATE = [
    [round(datetime(year, 1, 1, tzinfo=UTC).timestamp() * unit) for year in (2015, 2030)] for unit in (1_000, MICROS)
]
_TIME_NAME = re.compile(r"(^|[^a-z])(ts|time|timestamp|date|datetime|at|when|created|occurred|micros|millis|epoch)"
                        r"([^a-z]|$)|time|_at$|_ts$", re.IGNORECASE)  # fmt: skip
_ID_NAME = re.compile(r"(^|[^a-z])(id|ids|uuid|guid|key|seq|nr)([^a-z]|$)|id$", re.IGNORECASE)
_FRACTION = re.compile(r"-?\d+[.,]\d+")
_NEARLY = 0.95
_NAMED_ZONE = re.compile(r"\d ?([A-Z]{3,5})$")
# Zones whose names of their own are looked for behind times.
_ZONES = (
    "Europe/Berlin", "Europe/London", "Europe/Athens", "Europe/Lisbon", "America/New_York", "America/Chicago",
    "America/Denver", "America/Los_Angeles", "Asia/Tokyo", "Asia/Kolkata", "Australia/Sydney",
)  # fmt: skip
_BARE = re.compile(r"\d[T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?$")
_DAY = re.compile(r"\d{1,4}([-/.])\d{1,2}\1\d{1,4}")
_TIME_OF_DAY = re.compile(r"\d{2}:\d{2}(:\d{2}(\.\d+)?)?")


@dataclass(frozen=True)
class Time:
    """A column of times: whether its name says so, its form if it is not ISO 8601 or a number, and other forms.

    `bare`: it is text that names no zone. `mixed`: besides texts of the form there are ISO 8601 or numbers. `zone`: the
    one whose names (CET, CEST) stand behind the times. `by_value`: numbers, of which nothing but their size says so.
    """

    name: str
    named: bool
    form: str | None
    others: tuple[str, ...]
    micros: tuple[int | None, ...]
    bare: bool = False
    mixed: bool = False
    zone: str = ""
    by_value: bool = False


def is_named_id(name: str) -> bool:
    """Whether a column's name says that it is an id."""
    return bool(_ID_NAME.search(name))


def texts(values: Sequence[Any]) -> list[str | None]:
    """Values as ids: text, integers, and numbers with a point where all are whole; None where they are none."""
    floats = [value for value in values if isinstance(value, float)]
    is_whole = all(value.is_integer() and abs(value) < EXACT for value in floats)
    kinds = (str, int, float) if is_whole else (str, int)
    return [str(int(value) if isinstance(value, float) else value)
            if isinstance(value, kinds) and not isinstance(value, bool) and value != "" else None
            for value in values]  # fmt: skip


def is_fraction(values: Sequence[str | None]) -> bool:
    """Whether all values are numbers with a fraction, such as prices: no ids."""
    return all(value is None or _FRACTION.fullmatch(value) for value in values)


def distinct_share(values: Sequence[Any]) -> float:
    """Distinct values among those of a column; 0 where more than a few are missing: a log has bad records as well."""
    known = [value for value in values if value is not None]
    return len(set(known)) / len(known) if known and len(known) >= _NEARLY * len(values) else 0.0


def time_in_ids(values: Sequence[str | None]) -> str | None:
    """The rule by which ids hold their time, if nearly all do."""
    known = [value for value in values[:1000] if value is not None]
    for rule, micros in (("embedded", embedded_micros), ("uuid7", uuid7_micros)):
        held = [micros(value) for value in known]
        if known and sum(at is not None and _plausible(at) for at in held) >= _NEARLY * len(known):
            return rule
    return None


def as_time(name: str, values: Sequence[Any]) -> Time | None:
    """What a column's times are, if nearly all of its values are some; a number's column must be named like a time."""
    named = bool(_TIME_NAME.search(name))
    given = [value for value in values if value is not None and not isinstance(value, bool)]
    if not given or any(isinstance(value, dict | list) for value in given):
        return None
    if all(isinstance(value, int | float) or str(value).replace(".", "", 1).isdigit() for value in given) and not named:
        return Time(name, False, None, (), _micros(values, None), by_value=True) if _are_of_late(given) else None
    usual = _micros(values, None)
    if _fits(usual, len(values)):
        return Time(name, named, None, (), usual, bool(_BARE.search(str(given[0]))))
    zone = _zone_of(given)
    forms = [f"{form} %Z" for form in ("%Y-%m-%d %H:%M:%S", *FORMS)] if zone else FORMS
    tried = {
        form: _micros(values, form, zone) for form in forms if _fits(_micros(given[:50], form, zone), len(given[:50]))
    }
    fitting = [form for form, micros in tried.items() if _fits(micros, len(values))]
    if fitting:
        return Time(name, named, fitting[0], tuple(fitting[1:]), tried[fitting[0]], zone=zone)
    return _of_two_forms(name, values, usual) if named and any(usual) else None


def _are_of_late(numbers: Sequence[Any]) -> bool:
    """Whether nearly all are milliseconds or microseconds of the last years: no other numbers lie there alone.

    Not nanoseconds: ids that are made of time and a counter lie among those.
    """
    found = map(_number, numbers)
    return sum(low <= number <= high for number in found for low, high in _OF_LATE) >= _NEARLY * len(numbers)


def _number(value: Any) -> float:
    try:
        return float(value)
    except (ValueError, OverflowError):
        return 0.0


def _zone_of(values: Sequence[Any]) -> str:
    """The first zone that has all names which stand behind texts; empty where none does, or few have one."""
    found = [match[1] for value in values if (match := _NAMED_ZONE.search(str(value)))]
    names = set(found) - {"UTC", "GMT"}
    if not names or len(found) < _NEARLY * len(values):
        return ""
    return next(
        (
            zone
            for zone in _ZONES
            if names <= {datetime(2026, month, 1, tzinfo=ZoneInfo(zone)).tzname() for month in (1, 7)}
        ),
        "",
    )


def _of_two_forms(name: str, values: Sequence[Any], usual: Sequence[int | None]) -> Time | None:
    """Times of a column that two programs write: one of them ISO 8601 or numbers, the other one in another form."""
    left = [None if at is not None else value for value, at in zip(values, usual, strict=True)]
    given = [value for value in left if value is not None]
    tried = {form: _micros(left, form) for form in FORMS if _fits(_micros(given[:50], form), len(given[:50]))}
    both = {
        form: tuple(one if one is not None else other for one, other in zip(usual, micros, strict=True))
        for form, micros in tried.items()
    }
    fitting = [form for form, micros in both.items() if _fits(micros, len(values))]
    return Time(name, True, fitting[0], tuple(fitting[1:]), both[fitting[0]], mixed=True) if fitting else None


class DateAndTime(NamedTuple):
    """A column of dates and one of times of day, and the time that both make."""

    names: tuple[str, str]
    time: Time


def date_and_time(columns: Mapping[str, Sequence[Any]], times: Sequence[Time]) -> DateAndTime | None:
    """The first column of dates and the first one of times of day, where no column holds both."""
    if not all(at is None or at % (86_400 * MICROS) == 0 for time in times for at in time.micros):
        return None
    day, clock = (next((name for name in columns if _mostly(form, columns[name])), "") for form in (_DAY, _TIME_OF_DAY))
    if not day or not clock:
        return None
    pairs = zip(columns[day], columns[clock], strict=True)
    time = as_time("time", [f"{date} {at}" if date and at else None for date, at in pairs])
    return DateAndTime((day, clock), time) if time else None


def _mostly(form: re.Pattern[str], values: Sequence[Any]) -> bool:
    return sum(bool(form.fullmatch(str(value))) for value in values) >= _NEARLY * max(len(values), 1)


def _micros(values: Sequence[Any], form: str | None, zone: str = "") -> tuple[int | None, ...]:
    known = [at for at, value in enumerate(values) if value is not None]
    array = text_array([str(values[at]) for at in known], pa.string())
    micros, fine = micros_of(array) if form is None else micros_by(array, TimeForm((form,), zone or "UTC"))
    found: list[int | None] = [None] * len(values)
    for at, micro, good in zip(known, micros.tolist(), fine.tolist(), strict=True):
        found[at] = micro if good and _plausible(micro) else None
    return tuple(found)


def _fits(micros: Sequence[int | None], count: int) -> bool:
    return bool(count) and sum(at is not None for at in micros) >= _NEARLY * count


def _plausible(micros: int) -> bool:
    return _EARLIEST <= micros <= _LATEST


def _value(text: str) -> Any:
    """What a text of CSV stands for; numbers that begin with a zero are names."""
    if re.fullmatch(r"-?(0|[1-9]\d{0,17})", text):
        return int(text)
    return float(text) if re.fullmatch(r"-?(0|[1-9]\d*)\.\d+", text) else text


def type_of(values: Sequence[Any], *, as_text: bool) -> str:
    """The Spark SQL type that all values of a column fit; STRING where no other does. `as_text`: as CSV has them."""
    given = [_value(value) for value in values if value not in (None, "")] if as_text else values
    return common_type(given) or "STRING"
