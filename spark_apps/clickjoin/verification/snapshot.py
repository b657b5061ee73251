"""A consistent look at a range of event time, taken while joins run.

The order of the readings makes it sound. A claim is committed before its row, so the registry is read after every
output; an event leaves `pending` only once it has its row elsewhere, so `pending` is read before those.

A batch that was settled by the beginning has nothing under way any more. One that was planned by the end and not
settled at the beginning is in flight: what it has claimed, written or taken away may be half to be seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import reduce
from typing import TYPE_CHECKING

from clickjoin.dispatcher.journal import JournalReader, sequences
from clickjoin.kernel.data_skipping import matching, rows_in
from clickjoin.model.extent import Extent, text
from clickjoin.model.ids import EVENT_KEY
from clickjoin.model.shards import Boundary, Timeline, claims_since
from clickjoin.model.span import Span
from clickjoin.registry.boundary import load_boundary
from clickjoin.registry.shards import load_timeline
from clickjoin.retry.pending import states
from clickjoin.spark.session import tune_codegen, with_settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from clickjoin.config import Pipeline
    from clickjoin.lake.delta_reader import DeltaReader
    from clickjoin.lake.spark_reader import SparkReader


Key = tuple[str, str]  # replica, sequence
_REDRIVE = "redrive"


@dataclass(frozen=True)
class Journals:
    """By replica and sequence: the last batch `settled` at the beginning, and the last one `planned` at the end."""

    pipeline: str
    settled: Mapping[Key, int]
    planned: Mapping[Key, int]

    def open_tokens(self) -> list[str]:
        """Tokens of all batches in flight."""
        return [
            f"{self.pipeline}/{replica}/{sequence}/{number}"
            for (replica, sequence), last in sorted(self.planned.items())
            for number in range(self.settled.get((replica, sequence), 0) + 1, last + 1)
        ]

    def settled_sql(self) -> str:
        """Whether a landed row is of a settled batch: Spark SQL over columns `replica` and `batch`."""
        joins = [(replica, last) for (replica, sequence), last in sorted(self.settled.items()) if sequence == "join"]
        return " OR ".join(f"(replica = {text(replica)} AND batch <= {last})" for replica, last in joins) or "FALSE"

    def open_sql(self, column: str = "token") -> str:
        """Whether a token's batch is in flight: Spark SQL."""
        tokens = self.open_tokens()
        return f"{column} IN ({', '.join(text(token) for token in tokens)})" if tokens else "FALSE"

    def redriving_sql(self) -> str:
        """Whether a row of `unjoinable` may just be sent again: its claim goes before the row does."""
        moving = sorted(
            replica
            for (replica, sequence), last in self.planned.items()
            if sequence == _REDRIVE and last > self.settled.get((replica, sequence), 0)
        )
        return f"replica IN ({', '.join(text(replica) for replica in moving)})" if moving else "FALSE"


def settled_now(delta: DeltaReader, pipeline: str) -> dict[Key, int]:
    """Last settled batch of every sequence."""
    return {key: JournalReader(delta, pipeline, *key).settled() for key in sequences(delta)}


def planned_now(delta: DeltaReader, pipeline: str) -> dict[Key, int]:
    """Last planned batch of every sequence."""
    return {key: JournalReader(delta, pipeline, *key).planned() for key in sequences(delta)}


OUTPUTS = ("joined", "filtered", "unjoinable")
_ORDER = ("foreign", "pending", "unjoinable", "filtered", "expired", "joined", "registry", "forgotten")
_MANY = 500  # files: Spark looks up each path that it is given, where Delta's own reader knows them
_ROWS_A_TASK = 500_000
_PARTITIONS = "spark.sql.shuffle.partitions"
# Spark spends seconds on what follows from a filter over a dozen sums, and nothing that helps does.
_CONSTRAINTS = "spark.sql.constraintPropagation.enabled"


@dataclass(frozen=True)
class Reading:
    """All that is to be seen of a range: rows by table, each table at one version, and what they are judged by.

    `claims_since`: from when on the registry holds claims, by shard. `kept_since`: rows of `foreign` older than this
    may have been collected. `by_id`: an id alone names an event; `repeats`: see Pipeline.repeats.
    """

    span: Span
    rows: dict[str, DataFrame]
    journals: Journals
    claims_since: Boundary
    timeline: Timeline
    kept_since: datetime
    by_id: bool = False
    repeats: float = 0.0

    def narrowed(self, span: Span) -> Reading:
        """The same reading of a part of its range."""
        return replace(self, span=span, rows={name: rows.where(span.sql()) for name, rows in self.rows.items()})


def read(lake: SparkReader, pipeline: Pipeline, span: Span, now: datetime) -> Reading:
    """Take a reading. `now`: when it begins."""
    delta, extent = lake.delta, span.extent(int(pipeline.registry.bucket))
    settled = settled_now(delta, pipeline.pipeline)
    rows = {name: part(lake, name, extent) for name in _ORDER}
    if pipeline.by_id:
        rows["foreign"] = _of_the_range(lake, rows["foreign"], span)
        rows["joined"] = _with_repeats(lake, rows["joined"], span, pipeline.repeats)
    skew = pipeline.limits.max_skew
    return Reading(
        span=span,
        rows=rows,
        journals=Journals(pipeline.pipeline, settled, planned_now(delta, pipeline.pipeline)),
        # Last: anyone who moves the boundary drops claims only after that.
        claims_since=claims_since(load_boundary(delta), pipeline.repeats),
        timeline=load_timeline(delta),
        kept_since=now - timedelta(seconds=pipeline.kept("foreign") - skew),
        by_id=pipeline.by_id,
        repeats=pipeline.repeats,
    )


def _of_the_range(lake: SparkReader, landed: DataFrame, span: Span) -> DataFrame:
    """Landed rows without repeats of ids that were claimed, or published, before or after the range."""

    def ids(where: str) -> DataFrame:
        parts = [lake.read(name).where(where).select("event_id") for name in ("registry", *OUTPUTS)]
        return reduce(lambda left, right: left.unionAll(right), parts)

    elsewhere = ids(f"NOT ({span.sql()})").join(ids(span.sql()), ["event_id"], "left_anti")
    return landed.join(elsewhere, ["event_id"], "left_anti").select(*landed.columns)


def _with_repeats(lake: SparkReader, published: DataFrame, span: Span, repeats: float) -> DataFrame:
    """Rows of `joined`, and beside the range those of the same ids that are too near to be another event's."""
    apart = timedelta(seconds=repeats)
    near = Span(span.low - apart, span.high + apart)
    beside = lake.read("joined").where(f"{near.sql()} AND NOT ({span.sql()})").select(*published.columns)
    return published.unionAll(
        beside.join(published.select("event_id").distinct(), "event_id", "left_semi").select(*published.columns)
    )


def part(lake: SparkReader, name: str, extent: Extent) -> DataFrame:
    """Rows of an extent as of now, from just the files that can hold them."""
    if len(matching(lake.delta.files(name), extent)) <= _MANY:
        return lake.read_extent(name, extent)
    return lake.read(name, lake.delta.version(name)).select(*lake.delta.table(name).names).where(extent.sql())


def whole(delta: DeltaReader, span: Span) -> Span:
    """A range, and before it all that any event's rows are of, by the logs' statistics."""
    oldest = [span.low]
    for name in _ORDER:
        actions = delta.files(name)
        if actions.num_rows and "min.event_time" in actions.schema.names:
            oldest += [time for time in actions["min.event_time"].to_pylist() if time is not None]
    return Span(min(oldest), span.high)


def waiting(pending: DataFrame) -> DataFrame:
    """Events that wait for their primary at some replica: event_id, event_time, replica."""
    return states(pending).where("state = 'waiting'").select(*EVENT_KEY, "replica")


@contextmanager
def sized(lake: SparkReader, pipeline: Pipeline, span: Span) -> Iterator[None]:
    """Set the session up for as many rows as the range holds; afterwards it is as before."""
    extent = span.extent(int(pipeline.registry.bucket))
    total = sum(rows_in(lake.delta.files(name), extent) for name in ("foreign", "joined", "registry"))
    few = str(min(max(total // _ROWS_A_TASK, 2), 400))
    tune_codegen(lake.spark, total)
    with with_settings(lake.spark, {_PARTITIONS: few, _CONSTRAINTS: "false"}):
        yield
