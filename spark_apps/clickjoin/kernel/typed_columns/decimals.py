"""Numbers to DECIMAL: exact, or not at all. Runs on executors."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.kernel.arrays import bool_array, text_array, to_numpy
from clickjoin.kernel.typed_columns.converted import Converted, kept, like, split, whole


def from_text(values: Any, to: pa.DataType) -> Converted:
    """Numbers as text; most are written so that Arrow can be sure of them."""
    digits = max(to.precision - to.scale, 0)
    plain = rf"^[+-]?0{{0,9}}[0-9]{{0,{digits}}}(\.[0-9]{{0,{to.scale}}}0{{0,9}})?$" if to.precision <= 20 else "^$"
    return split(values, like(values, plain), lambda some: whole(some.cast(to)), lambda some: _exact(some, to))


def _exact(values: Any, to: pa.DataType) -> Converted:
    found = [_plain(text, to.precision, to.scale) for text in values.to_pylist()]
    fine = np.array([text is not None for text in found], np.bool_)
    return kept(text_array([text or "0" for text in found], pa.string()).cast(to), fine)


def _plain(text: str, precision: int, scale: int) -> str | None:
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


def from_decimals(values: Any, to: pa.DataType) -> Converted:
    """Numbers as decimal128 of 38 digits and the type's scale."""
    if to.precision == values.type.precision:
        return whole(values)
    most = text_array([str(10 ** (to.precision - to.scale))], pa.string()).cast(values.type)[0]
    fine = to_numpy(pc.less(pc.abs(values), most))
    return kept(pc.if_else(bool_array(fine), values, pa.nulls(1, values.type)[0]).cast(to), fine)
