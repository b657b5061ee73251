"""Ids and times of parsed records: what they must be, in whole columns at a time. Runs on executors.

An id of several columns is their values with `:` between them; inside of a value `%` is written %25 and `:` is written
%3A, so that two ids are the same only if all of their values are.

Times are microseconds since 1970. A time's column holds ISO 8601 text (UTC if it names no zone) or a number, also as
text, since 1970: seconds below 1e11 in size (the year 5138), milliseconds below 1e14, microseconds below 1e17,
nanoseconds above. What is finer than a microsecond is cut off, and a fraction of a number rounded to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING, Any, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.kernel.arrays import bool_array, int64_array, number_array, scalar, to_numpy
from clickjoin.kernel.handshake import VersionMismatch
from clickjoin.kernel.parse.arrow_json import EXACT
from clickjoin.model.field_path import parse_path
from clickjoin.model.ids import micros_of as micros_of_moment
from clickjoin.model.zones import rules_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from clickjoin.model.ids import RecordSpec, TimeForm

    Ints = npt.NDArray[np.int64]
    Mask = npt.NDArray[np.bool_]

LONGEST_ID = 1024
_SHOWN = 60  # characters of a value that a detail gives
_HEX = np.full(256, 255, np.uint8)
_HEX[[*b"0123456789"]] = np.arange(10)
_HEX[[*b"abcdef"]] = _HEX[[*b"ABCDEF"]] = np.arange(10, 16)


class Understood(NamedTuple):
    """Ids (string arrays) and times of the good records, `rows` their numbers; reason and detail of the others."""

    rows: Ints
    event_id: Any
    event_time: Ints
    primary_id: Any
    primary_time: Any
    bad: dict[int, tuple[str, str]]


def needed(spec: RecordSpec) -> dict[str, bool]:
    """Columns that a record must have, and whether each is an id (if not, it is a time)."""
    times = (spec.event_time, spec.primary_time)
    columns = {name: False for name in times if name and name not in ("embedded", "uuid7", "landed")}
    return columns | dict.fromkeys((*spec.event_id, *spec.primary_id), True)


def understand(columns: Mapping[str, Any], count: int, spec: RecordSpec) -> Understood:
    """Check ids and times of `count` records, whose needed columns are arrays of text, integers or floats."""
    checks = _Checks(count)
    event_id = checks.id(columns, spec.event_id, "missing-id", "id-too-long")
    event_time = checks.time(event_id, spec.event_time, columns, spec, "event")
    primary_id, primary_time = pa.nulls(count, pa.string()), None
    if spec.primary_id:
        primary_id = checks.id(columns, spec.primary_id, "bad-primary-id", "bad-primary-id")
        if spec.primary_time:
            primary_time = checks.time(primary_id, spec.primary_time, columns, spec, "primary")
    good = checks.code == 0
    rows, bad = np.flatnonzero(good), checks.bad()
    if bad:
        event_id, primary_id = event_id.filter(bool_array(good)), primary_id.filter(bool_array(good))
        event_time = event_time[good]
        primary_time = None if primary_time is None else primary_time[good]
    return Understood(rows, event_id, event_time, primary_id, primary_time, bad)


class _Checks:
    """What is wrong with each of n records; the first thing found counts."""

    def __init__(self, count: int) -> None:
        self.code = np.zeros(count, np.int16)
        self.known: list[tuple[str, str, Any]] = []

    def fail(self, wrong: Mask, reason: str, detail: str, shown: Any = None) -> None:
        """Note what is wrong with some records; of `shown`, values of all, the detail gives a record's own."""
        if wrong.any():
            self.known.append((reason, detail, shown))
            self.code[wrong & (self.code == 0)] = len(self.known)

    def id(self, columns: Mapping[str, Any], names: Sequence[str], missing: str, too_long: str) -> Any:
        parts = [_text(_column(columns, name), len(self.code)) for name in names]
        for name, part in zip(names, parts, strict=True):
            self.fail(_size(part) == 0, missing, f"`{name}` is missing, null or empty; give every record one")
        ids = parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*map(_escaped, parts), scalar(":"))
        whole = "`, `".join(names)
        self.fail(_size(ids) > LONGEST_ID, too_long, f"`{whole}` is longer than {LONGEST_ID} bytes; shorten it")
        return ids

    def time(self, ids: Any, rule: str, columns: Mapping[str, Any], spec: RecordSpec, whose: str) -> Ints:
        count, bad_id = len(self.code), "no-time-in-id" if whose == "event" else "bad-primary-id"
        if rule == "landed":
            micros = np.full(count, spec.landed_micros, np.int64)
        elif rule in ("embedded", "uuid7"):
            micros, known = (embedded if rule == "embedded" else uuid7)(ids)
            form = "ServerIP:ProcessId:TimestampMicros" if rule == "embedded" else "a UUIDv7"
            self.fail(~known, bad_id, f"the {whose} id is not of the form {form}; fix the id, or `{whose}_time`")
        else:
            values = _column(columns, rule)
            values = pa.nulls(count, pa.string()) if values is None else values
            time_form = spec.event_form if whose == "event" else spec.primary_form
            micros, known = micros_of(values) if time_form is None else micros_by(values, time_form)
            reason = "bad-time" if whose == "event" else "bad-primary-id"
            form = f"the form {time_form.format}" if time_form else "ISO 8601 or a number since 1970"
            self.fail(~known, reason, f"`{rule}` is missing or no time; write {form}", values)
        low, high = spec.earliest_micros, spec.latest_micros
        self.fail(micros < low, "impossible-time", f"the {whose} time is before {_iso(low)}, limits.earliest")
        late = f"the {whose} time is after {_iso(high)}, when it was read plus limits.max_skew; fix the clock"
        self.fail(micros > high, "impossible-time", late)
        return micros

    def bad(self) -> dict[int, tuple[str, str]]:
        return {row: _why(row, *self.known[self.code[row] - 1]) for row in np.flatnonzero(self.code).tolist()}


def _why(row: int, reason: str, detail: str, shown: Any) -> tuple[str, str]:
    value = None if shown is None else shown[row].as_py()
    return reason, detail if value is None else f"{detail} (got {str(value)[:_SHOWN]!r})"


def _column(columns: Mapping[str, Any], name: str) -> Any:
    """A column by its name, which in CSV may need no backticks."""
    if name in columns or "`" not in name:
        return columns.get(name)
    path = parse_path(name)
    return columns.get(str(path[0])) if len(path) == 1 else None


def _escaped(values: Any) -> Any:
    return pc.replace_substring(pc.replace_substring(values, "%", "%25"), ":", "%3A")


def _text(values: Any, count: int) -> Any:
    if values is None:
        values = pa.nulls(count, pa.string())
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    values = values if values.type == pa.string() else values.cast(pa.string())
    return values.fill_null(scalar("")) if values.null_count else values


def _size(values: Any) -> Ints:
    return to_numpy(pc.binary_length(values))


def _iso(micros: int) -> str:
    try:
        return datetime.fromtimestamp(micros // 1_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, ValueError, OSError):
        return f"{micros} µs since 1970"


def embedded(ids: Any) -> tuple[Ints, Mask]:
    """Times inside `ServerIP:ProcessId:TimestampMicros`, and which ids hold one; the rule of events.embedded_micros."""
    parts = pc.split_pattern(ids, ":")
    known = to_numpy(pc.list_value_length(parts)) == 3
    parts = parts if known.all() else parts.filter(bool_array(known))
    flat = parts.flatten()
    host, process, micros = (flat.take(int64_array(np.arange(at, len(flat), 3))) for at in range(3))
    digits = pc.and_(pc.ascii_is_decimal(process), pc.ascii_is_decimal(micros))
    fine = to_numpy(digits) & (_size(host) > 0) & (_size(micros) <= 18)
    known[known] = fine
    return _spread(micros if fine.all() else micros.filter(bool_array(fine)), known), known


def uuid7(ids: Any) -> tuple[Ints, Mask]:
    """Times inside UUIDv7, and which ids hold one; the rule of events.uuid7_micros."""
    known = _size(ids) == 36
    fixed = ids.filter(bool_array(known)).cast(pa.binary()).cast(pa.binary(36))
    chars = np.frombuffer(fixed.buffers()[1] or b"", np.uint8)[: 36 * len(fixed)].reshape(-1, 36)
    dashes = [8, 13, 18, 23]
    digits = _HEX[np.delete(chars, dashes, axis=1)]
    fine = (chars[:, dashes] == ord("-")).all(axis=1) & (digits < 16).all(axis=1)
    fine &= (digits[:, 12] == 7) & (digits[:, 16] >> 2 == 2)
    millis = np.zeros(len(digits), np.int64)
    for at in range(12):
        millis = millis * 16 + digits[:, at]
    micros = np.zeros(len(known), np.int64)
    micros[known] = np.where(fine, millis * 1000, 0)
    known[known] = fine
    return micros, known


def _spread(values: Any, known: Mask) -> Ints:
    micros = np.zeros(len(known), np.int64)
    micros[known] = to_numpy(values.cast(pa.int64()))
    return micros


SECONDS, MILLIS, MICROS = 10**11, 10**14, 10**17  # below which size a number is in this unit; nanoseconds above


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

    A local time that clocks show twice is the first of the two. Errors: VersionMismatch where the zone has other rules
    here than where the form was made: the same text would be another event.
    """
    if form.rules and rules_of(form.zone) != form.rules:
        raise VersionMismatch(f"time zone {form.zone} has other rules there (tzdata).")
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
        return _micros(datetime.strptime(text.strip(), form), zone)
    except (ValueError, OverflowError):
        return None


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
        return _micros(datetime.fromisoformat(text), UTC)
    except (ValueError, OverflowError):
        return None
