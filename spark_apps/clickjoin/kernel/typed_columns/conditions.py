"""Which records meet some conditions, by their JSON text. Runs on executors."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.kernel.arrays import scalar, text_array, to_numpy
from clickjoin.kernel.typed_columns.by_line import Found
from clickjoin.kernel.typed_columns.columns import portions, read
from clickjoin.model.field_path import parse_path
from clickjoin.model.where import Condition, text_of

if TYPE_CHECKING:
    import numpy.typing as npt


def meets(texts: Any, conditions: Iterable[Condition]) -> npt.NDArray[np.bool_]:
    """Which records (an array of JSON text) meet all conditions, by the rule of `where` (see parse.where)."""
    wanted = [(parse_path(one.path), one) for one in conditions]
    paths = {path: frozenset({pa.string()}) for path, _ in wanted}
    parts = [np.zeros(0, np.bool_)]
    for part in portions(texts):
        met = np.ones(len(part), np.bool_)
        found = read(part, paths)
        for path, one in wanted:
            for some in found[path]:
                met[some.rows] &= _among(some, one.values) == one.inside
        parts.append(met)
    return np.concatenate(parts)


def _among(found: Found, values: tuple[str | None, ...]) -> npt.NDArray[np.bool_]:
    """Which values are one of some texts, or none at all where that is among them."""
    if found.kind in ("json", "bad"):  # there, and equal to nothing
        return np.zeros(len(found.rows), np.bool_)
    texts = found.values.cast(pa.string())
    if found.kind == "number":
        texts = text_array([text_of(json.loads(number)) or "" for number in texts.to_pylist()], pa.string())
    named = text_array([value for value in values if value is not None], pa.string())
    among = to_numpy(pc.is_in(texts, value_set=named))
    if None in values:
        among = among | (to_numpy(pc.binary_length(pc.fill_null(texts, scalar("")))) == 0)
    return among
