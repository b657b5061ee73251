"""How many events some batches took up, each counted once, however often it came or was tried."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from clickjoin.model.ids import EVENT_KEY
from clickjoin.report import local_accounts
from clickjoin.retry.pending import waiting, waiting_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from clickjoin.lake.delta_reader import DeltaReader
    from clickjoin.lake.spark_reader import SparkReader
    from clickjoin.model.batch_plan import BatchPlan

_TABLES = {"join": "foreign", "retry": "pending"}  # what says which events a batch of a sequence took up


@dataclass
class Batches:
    """Batches of a replica, from the first to the last of each sequence."""

    replica: str
    spans: dict[str, tuple[int, int]] = field(default_factory=dict)

    def add(self, plan: BatchPlan) -> None:
        """Take up one more."""
        first, last = self.spans.get(plan.sequence, (plan.number, plan.number))
        self.spans[plan.sequence] = min(first, plan.number), max(last, plan.number)


@dataclass(frozen=True)
class Distinct:
    """Events by id and time: all that the batches took up, and those of them that wait now."""

    events_in: int
    pending: int


def distinct(lake: SparkReader, batches: Batches) -> Distinct:
    """Count the events of some batches, reading ids only: by this process where the tables are small, else by Spark."""
    sequences = [sequence for sequence in batches.spans if sequence in _TABLES]
    if not sequences:
        return Distinct(0, 0)
    if local_accounts.is_small(lake.delta, sorted(set(_TABLES.values()))):
        return _here(lake.delta, batches, sequences)
    parts = [_taken_up(lake, batches, sequence) for sequence in sequences]
    whole = parts[0] if len(parts) == 1 else parts[0].unionAll(parts[1])
    waits = waiting(lake, batches.replica).select(*EVENT_KEY, F.lit(True).alias("waits"))
    events = whole.distinct().join(waits, list(EVENT_KEY), "left")
    row = events.agg(F.count(F.lit(1)).alias("n"), F.count("waits").alias("waits")).collect()[0]
    return Distinct(row["n"], row["waits"])


def _here(delta: DeltaReader, batches: Batches, sequences: Sequence[str]) -> Distinct:
    keys, parts = list(EVENT_KEY), []
    for sequence in sequences:
        first, last = batches.spans[sequence]
        filters = [("replica", "=", batches.replica), ("batch", ">=", first), ("batch", "<=", last)]
        filters += [("sequence", "=", sequence)] if sequence == "retry" else []
        parts.append(delta.read(_TABLES[sequence], filters, keys))
    waits = list(waiting_rows(delta, delta.version("pending"), batches.replica, keys))
    return Distinct(*local_accounts.taken_up(parts, waits))


def _taken_up(lake: SparkReader, batches: Batches, sequence: str) -> DataFrame:
    first, last = batches.spans[sequence]
    rows = lake.read(_TABLES[sequence]).where(F.col("replica") == batches.replica)
    rows = rows.where(F.col("batch").between(first, last))
    return (rows.where(F.col("sequence") == sequence) if sequence == "retry" else rows).select(*EVENT_KEY)
