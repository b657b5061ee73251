"""Times from a column of numbers or text; see `fields` for the rules. Runs on executors."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.kernel.arrays import bool_array, number_array, to_numpy

if TYPE_CHECKING:
    import numpy.typing as npt

    from clickjoin.model.ids import TimeForm

    Ints = npt.NDArray[np.int64]
    Mask = npt.NDArray[np.bool_]

SECONDS, MILLIS, MICROS = 10**11, 10**14, 10**17  # below which size a number is in this unit; nanoseconds above
EXACT = 2**53  # integers up to here are exact as floats
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


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
    """Microseconds since 1970 of n texts in one form, and which of them are times in it; numbers are read as text.

    A local time that clocks show twice is the first of the two.
    """
    values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    encoded = pc.dictionary_encode(values if values.type == pa.string() else values.cast(pa.string()))
    zone = ZoneInfo(form.zone)
    moments = [_by_form(text, form.format, zone) for text in encoded.dictionary.to_pylist()]
    known = np.array([micros is not None for micros in [*moments, None]], np.bool_)
    micros = np.array([micros or 0 for micros in [*moments, None]], np.int64)
    places = to_numpy(pc.fill_null(encoded.indices, number_array([len(moments)], pa.int32())[0]))
    return micros[places], known[places]


def _by_form(text: str, form: str, zone: ZoneInfo) -> int | None:
    try:
        moment = datetime.strptime(text.strip(), form)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=zone)
        return (moment - _EPOCH) // timedelta(microseconds=1)
    except (ValueError, OverflowError):
        return None


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
    broken = to_numpy(pc.match_substring_regex(values, r"^-?[0-9]+\.[0-9]+$"))
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
        return _slowly(values)
    return micros, np.ones(len(values), np.bool_)


def _slowly(values: Any) -> tuple[Ints, Mask]:
    found = [_date(text) for text in values.to_pylist()]
    fine = np.array([micros is not None for micros in found], np.bool_)
    return np.array([micros or 0 for micros in found], np.int64), fine


def _date(text: str) -> int | None:
    try:
        moment = datetime.fromisoformat(text)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return (moment - _EPOCH) // timedelta(microseconds=1)
    except (ValueError, OverflowError):
        return None
