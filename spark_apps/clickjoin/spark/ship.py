"""Shipping code to executors: the kernel and the user's adapter travel with the plan, as a server has neither."""

from __future__ import annotations

import sys
from types import ModuleType

import clickjoin.kernel
import clickjoin.model


def ship_kernel() -> None:
    """Have all of `kernel`, and what it uses of `model`, pickled by value into every task."""
    _by_value(clickjoin.kernel)
    _by_value(clickjoin.model)


def ship_adapter(adapter: type) -> None:
    """Have an adapter pickled by value, with what it imports of its own package; one of ours alone, with its module."""
    package = adapter.__module__.partition(".")[0]
    _by_value(sys.modules[adapter.__module__ if package == clickjoin.__name__ else package])


def _by_value(module: ModuleType) -> None:
    from pyspark.cloudpickle import register_pickle_by_value

    register_pickle_by_value(module)
