"""Which records of a block belong to a stream, by whole columns or by one parsed record. Runs on executors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.kernel.arrays import bool_array, scalar, text_array, to_numpy
from clickjoin.kernel.parse.lines import Segment, column_of
from clickjoin.model.where import Condition, Where, text_of

if TYPE_CHECKING:
    import numpy.typing as npt

    Mask = npt.NDArray[np.bool_]


class Sieve:
    """Says which records a stream takes. `passed`: how many records no stream of the log has taken so far."""

    def __init__(self, where: Where | None) -> None:
        self.where, self.passed = where, 0

    @property
    def paths(self) -> tuple[str, ...]:
        """Of the values that it looks at."""
        return self.where.paths if self.where else ()

    @property
    def quiet(self) -> bool:
        """Whether another stream of the same log quarantines what cannot be parsed."""
        return self.where is not None and self.where.quiet

    def taken(self, segment: Segment) -> Segment:
        """Those records of a segment that are the stream's."""
        if self.where is None:
            return segment
        count = len(segment.rows)
        texts = {path: _texts(column_of(segment.columns, path), count) for path in self.where.paths}
        mine = _holds(self.where.mine, texts, count)
        if not self.where.quiet:
            theirs = self.where.theirs
            anyone = mine if theirs is None else mine | _holds(theirs, texts, count)
            self.passed += count - int(anyone.sum())
        if mine.all():
            return segment
        kept = bool_array(mine)
        return Segment(segment.rows[mine], {name: column.filter(kept) for name, column in segment.columns.items()})

    def takes(self, value_at: Callable[[str], Any]) -> bool:
        """Whether one record is taken, by its values; arrays and objects are there, and equal to nothing."""
        if self.where is None:
            return True
        mine = _record_holds(self.where.mine, value_at)
        if not (mine or self.where.quiet):
            theirs = self.where.theirs
            self.passed += theirs is None or not _record_holds(theirs, value_at)
        return mine


def _holds(conditions: Iterable[Condition], texts: Mapping[str, Any], count: int) -> Mask:
    found: Mask = np.ones(count, np.bool_)
    for path, values, inside in conditions:
        named = text_array([value for value in values if value is not None], pa.string())
        among = to_numpy(pc.is_in(texts[path], value_set=named))
        if None in values:
            among = among | to_numpy(pc.is_null(texts[path]))
        found &= among == inside
    return found


def _texts(values: Any, count: int) -> Any:
    if values is None:
        return pa.nulls(count, pa.string())
    if pa.types.is_floating(values.type):
        texts = text_array([text_of(value) or "" for value in values.to_pylist()], pa.string())
    else:
        texts = values.cast(pa.string())
    return pc.if_else(pc.equal(texts, scalar("")), pa.nulls(1, pa.string())[0], texts)


def _record_holds(conditions: Iterable[Condition], value_at: Callable[[str], Any]) -> bool:
    return all((_text(value_at(path)) in values) == inside for path, values, inside in conditions)


def _text(value: Any) -> str | bool | None:
    """As text_of; False, which is no text, of arrays and objects."""
    return False if isinstance(value, list) else text_of(value)
