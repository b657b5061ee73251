"""Ids and times of parsed records: what they must be, in whole columns at a time. Runs on executors.

An id of several columns is their values with `:` between them; inside of a value `%` is written %25 and `:` is written
%3A, so that two ids are the same only if all of their values are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.kernel.arrays import bool_array, int64_array, scalar, to_numpy
from clickjoin.kernel.forgotten import NO_ID
from clickjoin.kernel.parse.lines import column_of
from clickjoin.kernel.parse.times import micros_by, micros_of
from clickjoin.model.ids import TypeHints

if TYPE_CHECKING:
    import numpy.typing as npt

    from clickjoin.model.ids import RecordSpec

    Ints = npt.NDArray[np.int64]
    Mask = npt.NDArray[np.bool_]

LONGEST_ID = 1024
FRACTION = "a number with a fraction, but an id is a string or a whole number"
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
    forms = (form for form in (spec.event_form, spec.primary_form) if form)
    times = (spec.event_time, spec.primary_time, *(name for form in forms for name in form.more))
    columns = {name: False for name in times if name and name not in ("embedded", "uuid7")}
    return columns | dict.fromkeys((*spec.event_id, *spec.primary_id), True)


def understand(columns: Mapping[str, Any], count: int, spec: RecordSpec, hints: TypeHints = TypeHints()) -> Understood:
    """Check ids and times of `count` records, whose needed columns are arrays of text, integers or floats."""
    checks = _Checks(count, hints)
    event_id = checks.id(columns, spec.event_id, "missing-id", "id-too-long")
    event_time = checks.time(event_id, spec.event_time, columns, spec, "event")
    primary_id, primary_time = pa.nulls(count, pa.string()), None
    if spec.key:
        primary_id = checks.key(columns, spec.primary_id, first=spec.key == "first")
    elif spec.primary_id:
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

    def __init__(self, count: int, hints: TypeHints) -> None:
        self.code, self.hints = np.zeros(count, np.int16), hints
        self.known: list[tuple[str, str, Any]] = []

    def fail(self, wrong: Mask, reason: str, detail: str, shown: Any = None) -> None:
        """Note what is wrong with some records; of `shown`, values of all, the detail gives a record's own."""
        if wrong.any():
            self.known.append((reason, detail, shown))
            self.code[wrong & (self.code == 0)] = len(self.known)

    def id(self, columns: Mapping[str, Any], names: Sequence[str], missing: str, too_long: str) -> Any:
        parts = self.parts(columns, names)
        for name, part in zip(names, parts, strict=True):
            blank = (_size(part) == 0) | to_numpy(pc.utf8_is_space(part))
            self.fail(blank, missing, f"`{name}` is missing, null, empty or blank; give every record one")
        ids = parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*map(_escaped, parts), scalar(":"))
        whole = "`, `".join(names)
        self.fail(_size(ids) > LONGEST_ID, too_long, f"`{whole}` is longer than {LONGEST_ID} bytes; shorten it")
        return ids

    def parts(self, columns: Mapping[str, Any], names: Sequence[str]) -> list[Any]:
        """Columns of an id as text, decimals as the whole numbers that they are."""
        parts = [_text(column_of(columns, name), len(self.code)) for name in names]
        for at, name in enumerate(names):
            if name in self.hints.decimals:
                parts[at] = pc.replace_substring_regex(parts[at], r"\.0*$", "")
                self.fail(to_numpy(pc.match_substring(parts[at], ".")), "wrong-type", f"`{name}` is {FRACTION}")
        return parts

    def key(self, columns: Mapping[str, Any], names: Sequence[str], *, first: bool) -> Any:
        """What records are matched by: NO_ID where it is missing, null or blank; of several, where any is."""
        none, parts = pa.nulls(1, pa.string())[0], self.parts(columns, names)
        parts = [pc.if_else(pc.or_(pc.equal(part, scalar("")), pc.utf8_is_space(part)), none, part) for part in parts]
        if first or len(parts) == 1:
            keys = pc.coalesce(*parts, scalar(NO_ID))
        else:
            keys = pc.coalesce(pc.binary_join_element_wise(*map(_escaped, parts), scalar(":")), scalar(NO_ID))
        whole = "`, `".join(names)
        self.fail(
            _size(keys) > LONGEST_ID, "bad-primary-id", f"`{whole}` is longer than {LONGEST_ID} bytes; shorten it"
        )
        return keys

    def time(self, ids: Any, rule: str, columns: Mapping[str, Any], spec: RecordSpec, whose: str) -> Ints:
        count, bad_id = len(self.code), "no-time-in-id" if whose == "event" else "bad-primary-id"
        if rule in ("embedded", "uuid7"):
            micros, known = (embedded if rule == "embedded" else uuid7)(ids)
            form = "ServerIP:ProcessId:TimestampMicros" if rule == "embedded" else "a UUIDv7"
            self.fail(~known, bad_id, f"the {whose} id is not of the form {form}; fix the id, or `{whose}_time`")
        else:
            values = column_of(columns, rule)
            values = pa.nulls(count, pa.string()) if values is None else values
            time_form = spec.event_form if whose == "event" else spec.primary_form
            if time_form and time_form.more:
                parts = [_text(values, count), *(_text(column_of(columns, name), count) for name in time_form.more)]
                values = pc.binary_join_element_wise(*parts, scalar(" "))
            if time_form and rule in self.hints.bare:
                values = pc.replace_substring_regex(_text(values, count), "Z$", "")
            micros, known = micros_of(values) if time_form is None else micros_by(values, time_form)
            reason = "bad-time" if whose == "event" else "bad-primary-id"
            form = time_form.text if time_form else "ISO 8601 or a number since 1970"
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
