"""The state of all keys as this process holds it: a place for each key, so that a batch costs what its own keys do."""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from clickjoin.processors.port import NEVER

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

_FIRST = 1024


class Held:
    """State and timers by key; columns as a processor's `state`."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self._place: dict[str, int] = {}
        self._names = np.full(_FIRST, None, object)
        self._columns = {field.name: np.full(_FIRST, None, object) for field in schema}
        self._timers = np.full(_FIRST, NEVER, np.int64)
        self._free: list[int] = []
        self._used = 0

    def __len__(self) -> int:
        return len(self._place)

    def due(self, watermark: int) -> list[str]:
        """Keys whose timer the watermark has passed. They stay due until a new timer is put."""
        due: list[str] = self._names[np.flatnonzero(self._timers[: self._used] <= min(watermark, NEVER - 1))].tolist()
        return due

    def next_timer(self) -> int:
        """The earliest timer; NEVER if there is none."""
        return int(self._timers[: self._used].min(initial=NEVER))

    def places(self, keys: Sequence[str]) -> Ints:
        """The place of each key; -1 of one that has none."""
        return np.fromiter(map(self._place.get, keys, repeat(-1)), np.int64, len(keys))

    def get(self, places: Ints) -> tuple[pa.Table, npt.NDArray[np.bool_]]:
        """State at places in their order, null where there is none, and which have any."""
        known = places >= 0
        columns: dict[str, Any] = {}
        for field in self.schema:
            values = np.full(len(places), None, object)
            values[known] = self._columns[field.name][places[known]]
            columns[field.name] = pa.array(values, field.type)
        return pa.table(columns, schema=self.schema), known

    def put(
        self, keys: Sequence[str], places: Ints, state: pa.Table, timers: Ints, gone: npt.NDArray[np.bool_]
    ) -> None:
        """Replace the state of keys, or drop it; `places`: theirs as they are now."""
        self._drop([keys[at] for at in np.flatnonzero(gone).tolist()], places[gone & (places >= 0)])
        new = np.flatnonzero(~gone & (places < 0))
        places = places.copy()
        places[new] = self._add([keys[at] for at in new.tolist()])
        kept = np.flatnonzero(~gone)
        for field in self.schema:
            whole = np.full(len(keys), None, object)
            if state[field.name].null_count < len(keys):
                whole[:] = state[field.name].to_pylist()
            self._columns[field.name][places[kept]] = whole[kept]
        self._timers[places[kept]] = timers[kept]

    def _drop(self, keys: Sequence[str], places: Ints) -> None:
        for key in keys:
            self._place.pop(key, None)
        for column in (self._names, *self._columns.values()):
            column[places] = None
        self._timers[places] = NEVER
        self._free.extend(places.tolist())

    def _add(self, keys: Sequence[str]) -> Ints:
        """Places for keys that have none."""
        again = min(len(keys), len(self._free))
        reused, self._free = self._free[len(self._free) - again :], self._free[: len(self._free) - again]
        begin, self._used = self._used, self._used + len(keys) - again
        places = np.concatenate([np.array(reused, np.int64), np.arange(begin, self._used)])
        self._make_room()
        self._names[places] = np.array(keys, object)
        self._place.update(zip(keys, places.tolist(), strict=True))
        return places

    def _make_room(self) -> None:
        more = max(self._used - len(self._timers), 0) and max(self._used, 2 * len(self._timers)) - len(self._timers)
        if more:
            none = np.full(more, None, object)
            self._names = np.concatenate([self._names, none])
            self._columns = {name: np.concatenate([held, none]) for name, held in self._columns.items()}
            self._timers = np.concatenate([self._timers, np.full(more, NEVER, np.int64)])

    def all(self) -> tuple[list[str], pa.Table, Ints]:
        """Every key in order, with its state and timer."""
        keys = sorted(self._place)
        places = self.places(keys)
        state = {field.name: pa.array(self._columns[field.name][places], field.type) for field in self.schema}
        return keys, pa.table(state, schema=self.schema), self._timers[places]
