"""Aggregates of what a job reads, computed by the job itself: no second pass to count what was written."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from pyspark.sql import Observation

_PATIENCE = 2.0  # seconds; Spark's listener hands them over just after the action

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


class Observed:
    """Named aggregates of a DataFrame, known after an action on `rows`."""

    def __init__(self, rows: DataFrame, aggregates: list[Column]) -> None:
        self._observation = Observation()
        self.rows = rows.observe(self._observation, *aggregates)

    def result(self) -> dict[str, Any] | None:
        """The aggregates; None where the action turned out to have nothing to do (its commit was a replay)."""
        java = getattr(self._observation, "_jo", None)
        if java is None:  # Spark Connect sends them with the action's own answer
            return getattr(self._observation, "_result", None) or None
        end = time.monotonic() + _PATIENCE
        while not java.future().isCompleted():  # `get` would wait for ever for an action that was skipped
            if time.monotonic() > end:
                return None
            time.sleep(0.002)
        return self._observation.get
