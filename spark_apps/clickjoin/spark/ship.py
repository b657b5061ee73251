"""Shipping code to executors: the kernel and the user's adapter travel with the plan, as a server has neither."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import clickjoin.kernel
import clickjoin.model
from clickjoin.kernel.handshake import filled, made

_PACKAGES: set[str] = set()  # whose modules travel
# Of this machine alone.
_STAY = ("__builtins__", "__loader__", "__spec__", "__cached__", "__file__", "__path__")


def ship_kernel() -> None:
    """Have all of `kernel`, and what it uses of `model`, pickled by value into every task."""
    _by_value(clickjoin.kernel)
    _by_value(clickjoin.model)


def ship_adapter(adapter: type) -> None:
    """Have an adapter pickled by value, with what it imports of its own package; one of ours alone, with its module."""
    package = adapter.__module__.partition(".")[0]
    if package == clickjoin.__name__:
        return _by_value(sys.modules[adapter.__module__])
    _PACKAGES.add(package)
    _carry_modules()
    return _by_value(sys.modules[package])


def _by_value(module: ModuleType) -> None:
    from pyspark.cloudpickle import register_pickle_by_value

    register_pickle_by_value(module)


def _carry_modules() -> None:
    """Have modules travel that import each other: PySpark's own way to pickle them by value never comes to an end."""
    from pyspark.cloudpickle import CloudPickler

    table = CloudPickler.dispatch_table
    usual = table[ModuleType]
    if getattr(usual, "__module__", "") == __name__:
        return

    def reduce(module: ModuleType) -> Any:
        if module.__name__.partition(".")[0] not in _PACKAGES:
            return usual(module)
        names = {name: value for name, value in vars(module).items() if name not in _STAY}
        return made, (module.__name__,), names, None, None, filled

    table[ModuleType] = reduce
