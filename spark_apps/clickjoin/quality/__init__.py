"""Data quality: what a date's tables have to be like, checked by Great Expectations on Spark.

What measures or judges a date enters here; it reads tables, and writes only its own.
"""

from clickjoin.quality.history import require_store
from clickjoin.quality.outcomes import Report
from clickjoin.quality.runner import day_of, run

__all__ = ["Report", "day_of", "require_store", "run"]
