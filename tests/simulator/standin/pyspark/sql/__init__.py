"""Stands in for pyspark.sql."""

from __future__ import annotations

from typing import Any

from tests.simulator.columns import Column
from tests.simulator.frames import DataFrame
from tests.simulator.session import SparkSession
from tests.simulator.values import Row


class WindowSpec:
    """Partition and order of a window."""

    def __init__(self, keys: tuple[Any, ...] = (), order: tuple[Any, ...] = ()) -> None:
        from tests.simulator.frames import _column

        self.keys = [_column(key) for key in keys]
        self.order = [_column(item) for item in order]
        self.until: int | None = None

    def orderBy(self, *items: Any) -> WindowSpec:
        """With an order."""
        return WindowSpec(tuple(self.keys), items)

    def rowsBetween(self, low: int, high: int) -> WindowSpec:
        """With a frame: from the first row to one at some distance from each."""
        assert low == Window.unboundedPreceding
        made = WindowSpec(tuple(self.keys), tuple(self.order))
        made.until = high
        return made


class Window:
    """Windows."""

    unboundedPreceding = -(1 << 63)

    @staticmethod
    def partitionBy(*items: Any) -> WindowSpec:
        """By some columns."""
        return WindowSpec(items)


__all__ = ["Column", "DataFrame", "Row", "SparkSession", "Window", "WindowSpec"]
