"""Stands in for pyspark.sql.functions."""

from tests.simulator.columns import *  # noqa: F403
from tests.simulator.columns import Column, col, lit
from tests.simulator.functions import *  # noqa: F403
from tests.simulator.sql import expression as expr

__all__ = ["Column", "col", "expr", "lit"]
