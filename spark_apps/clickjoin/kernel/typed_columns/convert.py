"""Values of JSON records to the types of columns: what fits, and what does not. Runs on executors.

Text that is a number counts as that number, and empty text as no value, since all values of a CSV log are text; STRING
alone takes text as it stands. A number with a fraction or an exponent fits an integer type where it is whole and below
2^53. DECIMAL takes no digits beyond its scale but zeros. TIMESTAMP and DATE go by the rule of event times (see
parse.fields), in UTC, from year 1 to 9999. BOOLEAN: true, false, 1, 0.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.kernel.arrays import bool_array, int64_array, number_array, scalar, text_array, to_numpy
from clickjoin.kernel.parse.arrow_json import EXACT
from clickjoin.kernel.parse.times import micros_of

if TYPE_CHECKING:
    import numpy.typing as npt

    Mask = npt.NDArray[np.bool_]


class Converted(NamedTuple):
    """Values of one type, null where there is none or it does not fit; `misfit`: those that do not fit."""

    values: Any
    misfit: Mask


def spread(values: Any, places: Mask) -> Any:
    """Values put where a mask is true, null elsewhere; as many as it is true for."""
    at = pc.if_else(bool_array(places), int64_array(np.cumsum(places) - 1), pa.nulls(1, pa.int64())[0])
    return values.take(at)


def nothing(values: Any, to: pa.DataType) -> Converted:
    """None of them fits."""
    return Converted(pa.nulls(len(values), to), np.ones(len(values), np.bool_))


def whole(values: Any) -> Converted:
    """All of them fit."""
    return Converted(values, np.zeros(len(values), np.bool_))


def kept(values: Any, fine: Mask) -> Converted:
    """Those that fit, of values that have the type already."""
    return whole(values) if fine.all() else Converted(spread(values.filter(bool_array(fine)), fine), ~fine)


def split(values: Any, first: Mask, one: Callable[[Any], Converted], other: Callable[[Any], Converted]) -> Converted:
    """Some values converted one way, and the rest another."""
    if first.all():
        return one(values)
    if not first.any():
        return other(values)
    parts = one(values.filter(bool_array(first))), other(values.filter(bool_array(~first)))
    order = np.argsort(np.concatenate([np.flatnonzero(first), np.flatnonzero(~first)]), kind="stable")
    both = pa.concat_arrays([part.values for part in parts]).take(int64_array(order))
    return Converted(both, np.concatenate([part.misfit for part in parts])[order])


def like(values: Any, pattern: str) -> Mask:
    """Which texts a regular expression finds."""
    return to_numpy(pc.match_substring_regex(values, pattern))


_NUMBER = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_SHORT = r"^[+-]?[0-9]{1,18}$"
_INTEGER = re.compile(r"[+-]?[0-9]+")
_LEAST_MICROS, _MOST_MICROS = -62_135_596_800_000_000, 253_402_300_799_999_999
_DAY = 86_400_000_000
_SPACE = " \t\r\n"


def convert(kind: str, values: Any, to: pa.DataType) -> Converted:
    """Values (an array) as a type. `kind`: what they were in JSON.

    text | number (as text) | bool (booleans) | json (text of objects and arrays) | bad (what has no type), and of
    numbers that Arrow has read: int (int64), float (float64), decimal (decimal128 of the type's scale).
    """
    known = to_numpy(pc.is_valid(values))
    present = values.drop_null() if values.null_count else values
    done = _PRESENT[kind](present, to)
    if known.all():
        return done
    misfit = np.zeros(len(known), np.bool_)
    misfit[known] = done.misfit
    return Converted(spread(done.values, known), misfit)


def _text(values: Any, to: pa.DataType) -> Converted:
    if to == pa.string():
        return whole(values)
    values = pc.ascii_trim(values, _SPACE)
    empty = to_numpy(pc.binary_length(values)) == 0

    def full(some: Any) -> Converted:
        return split(some, like(some, _NUMBER), lambda them: _number(them, to), lambda them: _word(them, to))

    return split(values, empty, lambda some: whole(pa.nulls(len(some), to)), full)


def _word(values: Any, to: pa.DataType) -> Converted:
    """Text that is no number."""
    if to == pa.bool_():
        low = pc.utf8_lower(values)
        true, false = (to_numpy(pc.equal(low, scalar(word))) for word in ("true", "false"))
        return kept(bool_array(true), true | false)
    if pa.types.is_temporal(to):
        return _times(*micros_of(values), to)
    return nothing(values, to)


def _number(values: Any, to: pa.DataType) -> Converted:
    """Numbers as text."""
    if to == pa.string():
        return whole(pc.if_else(pc.equal(values, scalar("-0")), scalar("0"), values))
    if pa.types.is_decimal(to):
        return _decimals_of_text(values, to)
    if pa.types.is_floating(to):
        return _float(_doubles(values), to)
    short = like(values, _SHORT)
    return split(values, short, lambda some: _int(_unsigned(some).cast(pa.int64()), to), lambda some: _long(some, to))


def _unsigned(values: Any) -> Any:
    return pc.replace_substring_regex(values, r"^\+", "")


def _long(values: Any, to: pa.DataType) -> Converted:
    """Integers of many digits, fractions and exponents."""
    texts = values.to_pylist()
    integers = np.array([_INTEGER.fullmatch(text) is not None for text in texts], np.bool_)

    def exact(some: Any) -> Converted:
        numbers = [_in_range(text) for text in some.to_pylist()]
        known = np.array([number is not None for number in numbers], np.bool_)
        done = _int(int64_array([number or 0 for number in numbers]), to)
        return kept(done.values, known & ~done.misfit)

    return split(values, integers, exact, lambda some: _float(_doubles(some), to))


def _in_range(text: str) -> int | None:
    digits = text.lstrip("+-").lstrip("0")
    number = int(f"0{digits}") if len(digits) <= 19 else EXACT**2
    number = -number if text.startswith("-") else number
    return number if -(2**63) <= number < 2**63 else None


def _doubles(values: Any) -> Any:
    """Numbers as text to float64, too large ones infinite, no numbers (NaN) not a number."""
    fine = like(values, _NUMBER)
    texts = values if fine.all() else pc.if_else(bool_array(fine), values, scalar("nan"))
    try:
        return texts.cast(pa.float64())
    except pa.ArrowInvalid:
        return number_array([float(text) for text in texts.to_pylist()], pa.float64())


def _int(values: Any, to: pa.DataType) -> Converted:
    """Numbers as int64."""
    if to == pa.string():
        return whole(values.cast(pa.string()))
    if pa.types.is_decimal(to):
        return _decimals_of_text(values.cast(pa.string()), to)
    if pa.types.is_floating(to):
        return _float(values.cast(pa.float64(), safe=False), to)
    numbers = to_numpy(values)
    if pa.types.is_temporal(to):
        micros, known = micros_of(values)
        return _times(micros, known & (numbers > np.iinfo(np.int64).min), to)
    if to == pa.bool_():
        return kept(bool_array(numbers == 1), (numbers == 0) | (numbers == 1))
    if to == pa.int64():
        return whole(values)
    fine = (numbers >= np.iinfo(np.int32).min) & (numbers <= np.iinfo(np.int32).max)
    return kept(number_array(np.where(fine, numbers, 0), pa.int32()), fine)


def _float(values: Any, to: pa.DataType) -> Converted:
    """Numbers as float64."""
    numbers = to_numpy(values)
    if pa.types.is_floating(to):
        made = values.cast(to, safe=False)
        return kept(made, to_numpy(pc.is_finite(made)))
    if pa.types.is_temporal(to):
        return _times(*micros_of(values), to)
    with np.errstate(invalid="ignore"):
        fine = (np.abs(numbers) < EXACT) & (np.trunc(numbers) == numbers)
    done = _int(int64_array(np.where(fine, numbers, 0).astype(np.int64)), to)
    return kept(done.values, fine & ~done.misfit)


def _times(micros: Any, known: Mask, to: pa.DataType) -> Converted:
    fine = known & (micros >= _LEAST_MICROS) & (micros <= _MOST_MICROS)
    micros = np.where(fine, micros, 0)
    if pa.types.is_date(to):
        return kept(number_array(micros // _DAY, pa.int32()).view(to), fine)
    return kept(number_array(micros, to), fine)


def _bool(values: Any, to: pa.DataType) -> Converted:
    if to == pa.string():
        return whole(values.cast(to))
    return whole(values) if to == pa.bool_() else nothing(values, to)


def _json(values: Any, to: pa.DataType) -> Converted:
    return whole(values) if to == pa.string() else nothing(values, to)


def _decimals_of_text(values: Any, to: pa.DataType) -> Converted:
    """Numbers as text; most are written so that Arrow can be sure of them."""
    digits = max(to.precision - to.scale, 0)
    plain = rf"^[+-]?0{{0,9}}[0-9]{{0,{digits}}}(\.[0-9]{{0,{to.scale}}}0{{0,9}})?$" if to.precision <= 20 else "^$"
    return split(values, like(values, plain), lambda some: whole(some.cast(to)), lambda some: _exact_decimals(some, to))


def _exact_decimals(values: Any, to: pa.DataType) -> Converted:
    found = [_plain_decimal(text, to.precision, to.scale) for text in values.to_pylist()]
    fine = np.array([text is not None for text in found], np.bool_)
    return kept(text_array([text or "0" for text in found], pa.string()).cast(to), fine)


def _plain_decimal(text: str, precision: int, scale: int) -> str | None:
    """A number without an exponent and zeros at its end; None where it has too many digits, or is none."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    if not number.is_finite() or (number and not -scale <= number.adjusted() < precision - scale):
        return None
    text = format(number if number else Decimal(0), "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return None if len(text.partition(".")[2]) > scale else text


def _decimals_of_decimals(values: Any, to: pa.DataType) -> Converted:
    """Numbers as decimal128 of 38 digits and the type's scale."""
    if to.precision == values.type.precision:
        return whole(values)
    most = text_array([str(10 ** (to.precision - to.scale))], pa.string()).cast(values.type)[0]
    fine = to_numpy(pc.less(pc.abs(values), most))
    return kept(pc.if_else(bool_array(fine), values, pa.nulls(1, values.type)[0]).cast(to), fine)


_PRESENT: dict[str, Callable[[Any, pa.DataType], Converted]] = {
    "text": _text, "number": _number, "bool": _bool, "json": _json, "bad": nothing, "int": _int, "float": _float,
    "decimal": _decimals_of_decimals,
}  # fmt: skip
