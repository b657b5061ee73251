"""Values on their way to a type: those that fit, those that do not, and parts put together. Runs on executors."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.kernel.arrays import bool_array, int64_array, to_numpy

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
