"""Code that travels to Spark's workers with a plan: a remote server has no clickjoin."""

from __future__ import annotations

from types import ModuleType


def carry(*modules: ModuleType) -> None:
    """Have the functions of some modules sent by value from now on."""
    from pyspark.cloudpickle import register_pickle_by_value

    for module in modules:
        register_pickle_by_value(module)
