"""The engine that a pipeline's file names, for those who need not know which it is."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from clickjoin.engines.arrow import ArrowLake, ArrowTables
from clickjoin.engines.spark import SparkLake, SparkTables
from clickjoin.kernel.adapter import ArrowAdapter, needs_spark
from clickjoin.model.errors import ConfigError
from clickjoin.spark.session import in_process

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.engines.port import Lake
    from clickjoin.engines.tables_port import Tables
    from clickjoin.kernel.adapter import Adapter
    from clickjoin.schemas import Table
    from clickjoin.spark.lazy import Session

SPARK, ARROW = "spark", "arrow"


def open_lake(spark: Session, pipeline: Pipeline, *, sleep: Callable[[float], None] = time.sleep) -> Lake:
    """The tables of a pipeline, through its engine."""
    return (SparkLake if pipeline.engine == SPARK else ArrowLake)(spark, pipeline.root, sleep=sleep)


def open_tables(pipeline: Pipeline, spark: Session | None = None) -> Tables:
    """The same for commits of few rows. `spark`: else a session is started in this process when needed."""
    return open_own_tables(pipeline, pipeline.root, None, spark)


def open_own_tables(
    pipeline: Pipeline, root: str, own: Mapping[str, Table] | None, spark: Session | None = None
) -> Tables:
    """Tables of other kinds, in a folder inside the lake: a restore of the lake exchanges them with it."""
    within = None if own is None else pipeline.root
    if pipeline.engine == ARROW:
        return ArrowTables(root, own, within)
    return SparkTables(spark or (lambda: in_process(s3=pipeline.needs_s3)), root, own, within)


def require_adapter(pipeline: Pipeline, adapter: Adapter) -> Adapter:
    """Check that a pipeline's engine can run its adapter. Errors: ConfigError."""
    if pipeline.engine == ARROW and (needs_spark(adapter) or not isinstance(adapter, ArrowAdapter)):
        raise ConfigError(
            f"adapter {pipeline.adapter}: works on DataFrames (`prepare` or `merge`), and `engine: arrow` has Arrow "
            "tables alone",
            remedy=f"Write `engine: spark`. Or derive it: class {type(adapter).__name__}(ArrowAdapter), and in place "
            "of `merge` write def merge_table(self, joined: pa.Table) -> pa.Table (docs/adapters.md)",
        )
    return adapter
