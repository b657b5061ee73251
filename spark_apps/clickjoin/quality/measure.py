"""Measuring a date: its rows are read as of one moment, and each figure is computed by Spark, once."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from clickjoin.dispatcher.journal import sequences
from clickjoin.joiner.adapter import adapter_of
from clickjoin.joiner.typed_output import with_types
from clickjoin.lake.maintenance import sizes
from clickjoin.model.ids import bucket_at, moment
from clickjoin.model.reporter import Reporter
from clickjoin.model.span import Day, Span
from clickjoin.quality import batch_counts, fields, processed, profile_queries
from clickjoin.quality.profile import Figures
from clickjoin.verification.snapshot import Reading, part, read

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from clickjoin.config import Pipeline
    from clickjoin.lake.spark_reader import SparkReader

STREAMS = ("primary", "foreign")


@dataclass(frozen=True)
class Measured:
    """A date's figures, and the rows that they come from: by table, and of all places as verification reads them."""

    figures: Figures
    rows: Mapping[str, DataFrame]
    reading: Reading


class Measurer:
    """Measures dates of one pipeline. `micros`: now."""

    def __init__(self, lake: SparkReader, pipeline: Pipeline, micros: int, report_line: Reporter) -> None:
        self._lake, self._pipeline, self._now, self._report_line = lake, pipeline, moment(micros), report_line

    def measure(self, day: date) -> Measured:
        """All figures of a date; a pass for each table and stream, and one over all ids."""
        span, delta = Day(day).span, self._lake.delta
        reading, accounts = self._accounts(span)
        alone = self._pipeline.stream is not None
        rows = self._rows(reading, span)
        columns = delta.columns("joined")
        # What an earlier adapter made and today's does not is null, as it should be.
        today = adapter_of(with_types(self._pipeline, delta)).columns
        more = [name for name in columns if name not in delta.table("joined").names and name in today]
        tables = {
            name: self._timed(
                name, partial(profile_queries.table, alone=alone), rows[name], name, more if name == "joined" else ()
            )
            for name in rows
        }
        replicas = sorted({replica for replica, _ in sequences(delta)})
        streams = {name: self._timed(f"{name} ids", profile_queries.stream, rows[name], replicas) for name in STREAMS}
        sample = self._pipeline.quality.sample
        seen = {
            name: self._timed(f"{name} fields", fields.look, rows[name], tables[name]["rows"], sample)
            for name in STREAMS
        }
        figures = Figures(
            day,
            tables,
            streams,
            accounts,
            end=min(span.high, self._now).timestamp(),
            fields=seen,
            columns=columns,
            quarantine=batch_counts.quarantined(delta, {key for name in STREAMS for key in tables[name]["batches"]}),
            misfits=batch_counts.misfits(delta, tables["joined"]["tokens"]),
            typed=tuple(self._pipeline.output.columns),
            alone=alone,
            processed=processed.measured(self._pipeline, span),
            collected=frozenset(name for name in STREAMS if self._collected(name, span)),
        )
        return Measured(figures, rows, reading)

    def _accounts(self, span: Span) -> tuple[Reading, dict[str, int]]:
        """Where every id is. What seems wrong is read again: an id may just have moved."""
        reading = read(self._lake, self._pipeline, span, self._now)
        first = self._timed("accounts", profile_queries.accounts, reading)
        if not any(count for name, count in first.items() if name.startswith("fault:")):
            return reading, first
        reading = read(self._lake, self._pipeline, span, self._now)
        return reading, profile_queries.agreed(
            first, self._timed("accounts once more", profile_queries.accounts, reading)
        )

    def _rows(self, reading: Reading, span: Span) -> dict[str, DataFrame]:
        extent = span.extent(int(self._pipeline.registry.bucket))
        joined = self._lake.read("joined", self._lake.delta.version("joined")).where(
            extent.sql()
        )  # adapter's columns too
        primary = part(self._lake, "primary", extent)
        return {
            "joined": joined,
            "primary": primary,
            "foreign": reading.rows["foreign"],
            "registry": reading.rows["registry"],
        }

    def _timed(self, what: str, work: Callable[..., Any], *args: Any) -> Any:
        begun = time.perf_counter()
        done = work(*args)
        if (took := time.perf_counter() - begun) > 10:
            self._report_line(f"{what}: {took:.0f} s")
        return done

    def _collected(self, name: str, span: Span) -> bool:
        """Whether rows of the date may have been collected: it is old enough, and nothing before it is left.

        Old by the same clock as GC's: old logs that are read late are as fresh as their newest event.
        """
        delta, width = self._lake.delta, self._pipeline.registry.bucket
        actions = delta.files(name)
        times = actions["max.event_time"].to_pylist() if actions.num_rows else []
        clock = min([self._now, *([max(time for time in times if time)] if any(times) else [])])
        old = span.low < clock - timedelta(seconds=self._pipeline.kept(name))
        return old and not any(bucket <= bucket_at(span.low, width) for bucket in sizes(delta, name))
