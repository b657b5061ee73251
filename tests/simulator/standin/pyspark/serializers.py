"""Stands in for pyspark.serializers: a task stays in the simulator's process, as a number that leads to it."""

from __future__ import annotations

import pickle
from itertools import count
from typing import Any

_MOST = 1_000
_TASKS: dict[int, Any] = {}
_NUMBERS = count()


class _Place:
    def __init__(self, number: int) -> None:
        self._number = number

    def __reduce__(self) -> Any:
        return at, (self._number,)


def at(number: int) -> Any:
    """The task of a number."""
    return _TASKS[number]


class CloudPickleSerializer:
    """Gives each task a number."""

    def dumps(self, task: Any) -> bytes:
        """What makes a task again: its number."""
        number = next(_NUMBERS)
        _TASKS[number] = task
        _TASKS.pop(number - _MOST, None)
        return pickle.dumps(_Place(number))
