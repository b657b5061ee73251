"""The ids that a window holds, and batches of fresh ones with some repeats: the same for every contender."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from zlib import crc32

import numpy as np
import pyarrow as pa

BATCH, REPEATS = 10_000, 60
_OF_A_DAY = 1_000  # ids of a day that are kept, to come again
DAYS = 27  # of a window of 28
_DIGITS = np.frombuffer(b"0123456789abcdef", np.uint8)
_PLACES = [*range(8), *range(9, 13), *range(14, 18), *range(19, 23), *range(24, 36)]


def uuids(rng: np.random.Generator, count: int) -> pa.Array:
    """Random UUIDs as text."""
    text = np.full((count, 36), ord("-"), np.uint8)
    text[:, _PLACES] = _DIGITS[rng.integers(0, 16, (count, 32), np.uint8)]
    ends = np.arange(0, 36 * count + 1, 36, dtype=np.int32)
    return pa.StringArray.from_buffers(count, pa.py_buffer(ends.tobytes()), pa.py_buffer(text.tobytes()))


def days(count: int) -> Iterator[pa.Array]:
    """The ids of a window, `count` in all, a day at a time; always the same ones."""
    for day in range(DAYS):
        yield uuids(np.random.default_rng((count, day)), count * (day + 1) // DAYS - count * day // DAYS)


def shards_of(ids: pa.Array, shards: int) -> pa.Array:
    """The shard of each id, all of which are of 36 characters."""
    text = memoryview(ids.buffers()[2])
    found = [crc32(text[at : at + 36]) % shards for at in range(0, 36 * len(ids), 36)]
    return pa.array(found, pa.int32())


class Batches:
    """Batches that no window has seen, but for `REPEATS` ids each, from any day of it."""

    def __init__(self, count: int) -> None:
        self._rng, self._count = np.random.default_rng((count, DAYS)), count
        self._known: list[str] = []

    def saw(self, ids: pa.Array) -> None:
        """A day of the window: some of its ids will come again."""
        at = np.sort(self._rng.choice(len(ids), min(_OF_A_DAY, len(ids)), replace=False))
        self._known += ids.take(pa.array(at)).to_pylist()

    def apart(self) -> tuple[list[str], list[str]]:
        """Fresh ids, and repeats, each of which comes once more in all of the batches."""
        self._rng.shuffle(self._known)
        again, self._known = self._known[:REPEATS], self._known[REPEATS:]
        assert len(again) == REPEATS, "no ids are left to come again"
        return uuids(self._rng, BATCH - REPEATS).to_pylist(), again

    def next(self) -> list[str]:
        """Both, in any order."""
        fresh, again = self.apart()
        ids = fresh + again
        self._rng.shuffle(ids)
        return ids


def write_log(file: Path, ids: list[str], now: datetime) -> None:
    """A log of messages with these ids, all of one moment."""
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = (json.dumps({"messageId": name, "at": now.isoformat(), "n": n}) for n, name in enumerate(ids))
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
