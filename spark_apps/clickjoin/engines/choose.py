"""The engine that a pipeline's file names, for those who need not know which it is."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from clickjoin.engines.arrow import ArrowLake, ArrowTables

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.engines.port import Lake, Tables
    from clickjoin.schemas import Table
    from clickjoin.spark.lazy import Session


def open_lake(spark: Session, pipeline: Pipeline, *, sleep: Callable[[float], None] = time.sleep) -> Lake:
    """The tables of a pipeline, through its engine."""
    return ArrowLake(spark, pipeline.root, sleep=sleep)


def open_tables(pipeline: Pipeline) -> Tables:
    """The same for whoever commits few rows alone."""
    return ArrowTables(pipeline.root)


def open_own_tables(pipeline: Pipeline, root: str, own: Mapping[str, Table]) -> Tables:
    """Tables of other kinds, in a folder inside the lake: a restore of the lake exchanges them with it."""
    return ArrowTables(root, own, pipeline.root)
