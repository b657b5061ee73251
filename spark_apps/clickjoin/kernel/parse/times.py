"""Times in columns: text, integers and floats, in whole columns at a time. Runs on executors.

Times are microseconds since 1970. A time's column holds ISO 8601 text (UTC if it names no zone) or a number, also as
text, since 1970: seconds below 1e11 in size (the year 5138), milliseconds below 1e14, microseconds below 1e17,
nanoseconds above. What is finer than a microsecond is cut off, and a fraction of a number rounded to it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.kernel.arrays import bool_array, number_array, to_numpy
from clickjoin.kernel.handshake import VersionMismatch
from clickjoin.kernel.parse.arrow_json import EXACT
from clickjoin.model.ids import ISO
from clickjoin.model.ids import micros_of as micros_of_moment
from clickjoin.model.zones import rules_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from clickjoin.model.ids import TimeForm

    Ints = npt.NDArray[np.int64]
    Mask = npt.NDArray[np.bool_]

_FRACTION = r"^-?[0-9]+(\.[0-9]+([eE][+-]?[0-9]+)?|[eE][+-]?[0-9]+)$"
_NUMBER = r"-?[0-9]{1,19}(\.[0-9]+)?([eE][+-]?[0-9]+)?"
_UTC = r"([0-9]) ?(?:UTC|[Zz])$"
_MIDNIGHT = re.compile(r"[T ]24:00(:00(\.0+)?)?(?=$|Z|[+-])")
SECONDS, MILLIS, MICROS = 10**11, 10**14, 10**17  # below which size a number is in this unit; nanoseconds above


ZONE_NAME = "%Z"  # at a form's end: strptime itself knows the names of the host's own zone alone
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def micros_of(values: Any) -> tuple[Ints, Mask]:
    """Microseconds since 1970 of n times (text, integers or floats), and which of them are times."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    known = to_numpy(pc.is_valid(values))
    micros = np.zeros(len(known), np.int64)
    filled = values.drop_null() if values.null_count else values
    part, fine = _convert(filled)
    micros[known] = np.where(fine, part, 0)
    known[known] = fine
    return micros, known


def micros_by(values: Any, form: TimeForm) -> tuple[Ints, Mask]:
    """Microseconds since 1970 of n texts, and which of them are times in one of its forms; numbers are read as text.

    A local time that clocks show twice is the first of the two. Errors: VersionMismatch where the zone has other rules
    here than where the form was made: the same text would be another event.
    """
    if form.rules and rules_of(form.zone) != form.rules:
        raise VersionMismatch(f"time zone {form.zone} has other rules there (tzdata).")
    values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    encoded = pc.dictionary_encode(values if values.type == pa.string() else values.cast(pa.string()))
    zone = ZoneInfo(form.zone)
    moments = [_by_forms(text, form.formats, zone) for text in encoded.dictionary.to_pylist()]
    known = np.array([micros is not None for micros in [*moments, None]], np.bool_)
    micros = np.array([micros or 0 for micros in [*moments, None]], np.int64)
    places = to_numpy(pc.fill_null(encoded.indices, number_array([len(moments)], pa.int32())[0]))
    return micros[places], known[places]


def _by_forms(text: str, forms: Sequence[str], zone: ZoneInfo) -> int | None:
    """By the first form that reads it."""
    return next((micros for form in forms if (micros := _by_form(text.strip(), form, zone)) is not None), None)


def _by_form(text: str, form: str, zone: ZoneInfo) -> int | None:
    if form == ISO:
        return _date(text, zone)
    try:
        if form.endswith(ZONE_NAME):
            return _by_zone_name(text, form, zone)
        return _micros(datetime.strptime(text, form), zone)
    except (ValueError, OverflowError):
        return None


def _by_zone_name(text: str, form: str, zone: ZoneInfo) -> int | None:
    """A time with one of the zone's names behind it (CET, CEST), which says which one of an hour that comes twice.

    UTC and GMT are understood in any zone; other names are none. Errors: ValueError, OverflowError.
    """
    local = text.rstrip(_LETTERS)
    name = text[len(local) :].upper()
    naive = datetime.strptime(local.rstrip(), form.removesuffix(ZONE_NAME).rstrip())
    if name in ("UTC", "GMT", "Z"):
        return micros_of_moment(naive.replace(tzinfo=UTC))
    both = (naive.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
    return next((micros_of_moment(moment) for moment in both if (moment.tzname() or "").upper() == name), None)


def _micros(moment: datetime, zone: tzinfo) -> int:
    """A time's microseconds, in a zone where it names none."""
    return micros_of_moment(moment if moment.tzinfo else moment.replace(tzinfo=zone))


def _convert(values: Any) -> tuple[Ints, Mask]:
    if pa.types.is_integer(values.type):
        numbers = to_numpy(values)
        return _integers(numbers), np.ones(len(numbers), np.bool_)
    if pa.types.is_floating(values.type):
        return _floats(to_numpy(values))
    return _texts(values)


def _integers(numbers: Ints) -> Ints:
    size = np.abs(numbers)
    delta = np.where(size < SECONDS, numbers * 1_000_000, np.where(size < MILLIS, numbers * 1000, numbers))
    return np.where(size < MICROS, delta, numbers // 1000)


def _floats(numbers: npt.NDArray[np.float64]) -> tuple[Ints, Mask]:
    fine = np.isfinite(numbers) & (np.abs(numbers) < EXACT)
    numbers = np.where(fine, numbers, 0)
    size = np.abs(numbers)
    scaled = np.where(size < SECONDS, numbers * 1e6, np.where(size < MILLIS, numbers * 1e3, numbers))
    return np.rint(scaled).astype(np.int64), fine


def _texts(values: Any) -> tuple[Ints, Mask]:
    micros, fine = np.zeros(len(values), np.int64), np.zeros(len(values), np.bool_)
    whole = to_numpy(pc.match_substring_regex(values, r"^-?([0-9]{1,18}|[1-8][0-9]{18})$"))
    broken = to_numpy(pc.match_substring_regex(values, _FRACTION))
    if whole.any():
        micros[whole] = _integers(to_numpy(values.filter(bool_array(whole)).cast(pa.int64())))
        fine[whole] = True
    if broken.any():
        micros[broken], fine[broken] = _floats(to_numpy(values.filter(bool_array(broken)).cast(pa.float64())))
    rest = ~(whole | broken)
    if rest.any():
        micros[rest], fine[rest] = _dates(values if rest.all() else values.filter(bool_array(rest)))
    return micros, fine


def _dates(values: Any) -> tuple[Ints, Mask]:
    zoned = to_numpy(pc.match_substring_regex(values, r"[T ].*(Z|[+-][0-9]{2}(:?[0-9]{2})?)$"))
    micros = np.zeros(len(values), np.int64)
    try:
        for part, kind in ((zoned, pa.timestamp("us", "UTC")), (~zoned, pa.timestamp("us"))):
            if part.any():
                micros[part] = to_numpy(values.filter(bool_array(part)).cast(kind).cast(pa.int64()))
    except pa.ArrowInvalid:
        usual = pc.replace_substring_regex(values, _UTC, r"\1Z")  # as BigQuery writes it
        return _dates(usual) if not usual.equals(values) else _slowly(values)
    return micros, np.ones(len(values), np.bool_)


def _slowly(values: Any) -> tuple[Ints, Mask]:
    found = [_date(text, UTC) for text in values.to_pylist()]
    fine = np.array([micros is not None for micros in found], np.bool_)
    return np.array([micros or 0 for micros in found], np.int64), fine


def _date(text: str, zone: tzinfo) -> int | None:
    """ISO 8601, in a zone where it names none, also with 24 for the hour that ends a day; or a number as text."""
    text = re.sub(_UTC, r"\1Z", text.strip())
    if re.fullmatch(r"-?[0-9]{1,19}", text):
        return int(_integers(np.array([int(text)], np.int64))[0]) if -(2**63) < int(text) < 2**63 else None
    if re.fullmatch(_NUMBER, text):
        micros, fine = _texts(pa.array([text]))
        return int(micros[0]) if fine[0] else None
    midnight = _MIDNIGHT.search(text)
    try:
        found = datetime.fromisoformat(_MIDNIGHT.sub("T00:00:00", text) if midnight else text)
        return _micros(found + timedelta(days=1) if midnight else found, zone)
    except (ValueError, OverflowError):
        return None
