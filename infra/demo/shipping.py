"""Logs as a shipper brings them to a bucket: what was written in a second is an object of its own, below its date."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from .feeder import Feeder

EVERY = 1.0  # seconds from a line's writing to its object, at most


class ObjectFeeder(Feeder):
    """A feeder whose files are never seen: `put` gets the key and content of each object, and the last ones at the end.

    Keys: STREAM/dt=DATE/FILE-NUMBER.jsonl.
    """

    def __init__(self, *arguments: Any, put: Callable[[str, bytes], object], **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._put, self._numbers = put, count()
        self._held: defaultdict[Path, _Held] = defaultdict(_Held)
        self._next = 0.0

    def _file(self, path: Path) -> Any:
        return self._held[path]

    def _rotate(self, path: Path) -> None:
        """Nothing: objects are not renamed."""
        self._rotated = True

    def _tick(self) -> None:
        if self._clock() >= self._next:
            self._ship()

    def _close(self) -> None:
        self._ship()

    def _ship(self) -> None:
        self._next = self._clock() + EVERY
        for path, held in self._held.items():
            if held.lines:
                date = time.strftime("%Y-%m-%d", time.gmtime(self._clock()))
                key = f"{path.parent.name}/dt={date}/{path.stem}-{next(self._numbers):06}.jsonl"
                data, held.lines = b"".join(held.lines), []
                self._put(key, data)


class _Held:
    def __init__(self) -> None:
        self.lines: list[bytes] = []

    def write(self, line: bytes) -> None:
        self.lines.append(line)
