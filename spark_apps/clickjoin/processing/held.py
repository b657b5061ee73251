"""The state of all keys as this process holds it: a place for each key, so that a batch costs what its own keys do."""

from __future__ import annotations

import heapq
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
_STALE = 4  # timers that were replaced, for each that counts, before the heap is made again


class Held:
    """State and timers by key; columns as a processor's `state`."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self._place: dict[str, int] = {}
        self._columns = {field.name: np.full(_FIRST, None, object) for field in schema}
        self._timers = np.full(_FIRST, NEVER, np.int64)
        self._free: list[int] = []
        self._used = 0
        self._heap: list[tuple[int, str]] = []

    def __len__(self) -> int:
        return len(self._place)

    def __contains__(self, key: str) -> bool:
        return key in self._place

    def due(self, watermark: int) -> list[str]:
        """Keys whose timer the watermark has passed. They stay due until a new timer is put."""
        found: list[tuple[int, str]] = []
        while self._heap and self._heap[0][0] <= watermark:
            at, key = heapq.heappop(self._heap)
            if self.timer(key) == at:
                found.append((at, key))
        for item in found:
            heapq.heappush(self._heap, item)
        return sorted({key for _, key in found})

    def next_timer(self) -> int:
        """The earliest timer; NEVER if there is none."""
        while self._heap and self.timer(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else NEVER

    def timer(self, key: str) -> int:
        """When a key is looked at without an event; NEVER if it is not."""
        place = self._place.get(key)
        return NEVER if place is None else int(self._timers[place])

    def get(self, keys: Sequence[str]) -> tuple[pa.Table, npt.NDArray[np.bool_]]:
        """State of keys in their order, null where there is none, and which have any."""
        places = self._places(keys)
        known = places >= 0
        columns: dict[str, Any] = {}
        for field in self.schema:
            values = np.full(len(keys), None, object)
            values[known] = self._columns[field.name][places[known]]
            columns[field.name] = pa.array(values, field.type)
        return pa.table(columns, schema=self.schema), known

    def put(self, keys: Sequence[str], state: pa.Table, timers: Ints, gone: npt.NDArray[np.bool_]) -> None:
        """Replace the state of keys, or drop it."""
        for at in np.flatnonzero(gone).tolist():
            self._drop(keys[at])
        kept = np.flatnonzero(~gone)
        names = keys if len(kept) == len(keys) else [keys[at] for at in kept.tolist()]
        places = self._places(names)
        for at in np.flatnonzero(places < 0).tolist():
            places[at] = self._place_of(names[at])
        for field in self.schema:
            whole = np.empty(len(keys), object)
            whole[:] = state[field.name].to_pylist()
            self._columns[field.name][places] = whole[kept]
        self._timers[places] = timers[kept]
        for at in kept[timers[kept] < NEVER].tolist():
            heapq.heappush(self._heap, (int(timers[at]), keys[at]))
        if len(self._heap) > _STALE * len(self._place) + _FIRST:
            self._heap = [(at, key) for key in self._place if (at := self.timer(key)) < NEVER]
            heapq.heapify(self._heap)

    def _places(self, keys: Sequence[str]) -> Ints:
        """The place of each key; -1 of one that has none."""
        return np.fromiter(map(self._place.get, keys, repeat(-1)), np.int64, len(keys))

    def _drop(self, key: str) -> None:
        place = self._place.pop(key, None)
        if place is not None:
            for column in self._columns.values():
                column[place] = None
            self._timers[place] = NEVER
            self._free.append(place)

    def _place_of(self, key: str) -> int:
        place = self._place.get(key)
        if place is None:
            place = self._free.pop() if self._free else self._next()
            self._place[key] = place
        return place

    def _next(self) -> int:
        if self._used == len(self._timers):
            more = self._used
            self._columns = {
                name: np.concatenate([held, np.full(more, None, object)]) for name, held in self._columns.items()
            }
            self._timers = np.concatenate([self._timers, np.full(more, NEVER, np.int64)])
        self._used += 1
        return self._used - 1

    def all(self) -> tuple[list[str], pa.Table, Ints]:
        """Every key in order, with its state and timer."""
        keys = sorted(self._place)
        places = np.fromiter((self._place[key] for key in keys), np.int64, len(keys))
        state = {field.name: pa.array(self._columns[field.name][places], field.type) for field in self.schema}
        return keys, pa.table(state, schema=self.schema), self._timers[places]
