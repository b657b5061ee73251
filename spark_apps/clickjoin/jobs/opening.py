"""Opening a pipeline's engine for a job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clickjoin.engine import Engine
from clickjoin.lake.requirements import require_lake

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.spark.lazy import Session


def open_engine(spark: Session, pipeline: Pipeline, replica: str, *, lake_exists: bool) -> Engine:
    """An engine. Errors: LakeError for a lake without tables where `lake_exists`: it is not mounted, or was moved."""
    if lake_exists:
        require_lake(pipeline.root)
    return Engine(spark, pipeline, replica)
