"""An adapter that leaves some clicks out, so that schedules have filtered events too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from clickjoin.joiner.adapter import Merge

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Dropping(Merge):
    """Leaves out clicks whose id begins with `drop`."""

    def prepare(self, foreign: DataFrame) -> DataFrame:
        """Columns out: those that came in."""
        return foreign.where(F.substring("event_id", 1, 4) != "drop")
