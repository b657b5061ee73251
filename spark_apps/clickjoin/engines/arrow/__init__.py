"""`engine: arrow`: Arrow works and delta-rs commits, on disks and S3; Spark spreads what is large."""

from clickjoin.engines.arrow.lake import ArrowLake
from clickjoin.engines.arrow.tables import ArrowTables

__all__ = ["ArrowLake", "ArrowTables"]
