"""Measuring a date: its rows are read as of one moment, and each figure is computed once, by Spark or from logs.

For each table one pass of aggregates, for each stream one over its ids, one over all ids. Great Expectations would make
a job or more of each expectation; here an expectation costs one more term of a pass that is made anyway.
"""

from __future__ import annotations

import json
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc
from pyspark.sql import functions as F

from clickjoin.dispatcher.journal import sequences
from clickjoin.joiner.adapter import adapter_of
from clickjoin.joiner.typed_output import with_types
from clickjoin.lake.maintenance import sizes
from clickjoin.lake.readable import ReadableTables
from clickjoin.model.errors import LakeError
from clickjoin.model.ids import bucket_at, moment
from clickjoin.model.reporter import Reporter
from clickjoin.model.span import Day, Span
from clickjoin.processing.check import check
from clickjoin.processing.tables import folder
from clickjoin.quality.fields import Fields, look
from clickjoin.verification import id_places
from clickjoin.verification.findings import FAULTS, has
from clickjoin.verification.snapshot import Reading, part, read

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from clickjoin.config import Pipeline
    from clickjoin.lake.delta_reader import DeltaReader
    from clickjoin.lake.spark_reader import SparkReader

STREAMS = ("primary", "foreign")
_QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
_ACCURACY = 1000
REQUIRED = {
    "joined": ("event_id", "primary_id", "primary_time", "token"),
    "primary": ("event_id", "payload"),
    "foreign": ("event_id", "primary_id", "payload"),
    "registry": ("event_id", "token", "outcome"),
}
STRANGE = "outcome NOT IN ('joined', 'filtered', 'unjoinable', 'forgotten')"  # that no batch writes
# Where an accepted event is: in the order in which it counts once only.
PLACES = {
    "joined": "joined > 0",
    "filtered": "filtered > 0",
    "unjoinable": "unjoinable > 0 OR moving > 0",
    "forgotten": "forgotten > 0",
    "pending": "waiting > 0",
    "expired": "expired > 0",
    "in_flight": "open_claims > 0",
}


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
        of_table = partial(_of_table, alone=alone)
        tables = {
            name: self._timed(name, of_table, rows[name], name, more if name == "joined" else ()) for name in rows
        }
        replicas = sorted({replica for replica, _ in sequences(delta)})
        streams = {name: self._timed(f"{name} ids", _of_stream, rows[name], replicas) for name in STREAMS}
        sample = self._pipeline.quality.sample
        seen = {name: self._timed(f"{name} fields", look, rows[name], tables[name]["rows"], sample) for name in STREAMS}
        figures = Figures(
            day,
            tables,
            streams,
            accounts,
            end=min(span.high, self._now).timestamp(),
            fields=seen,
            columns=columns,
            quarantine=quarantined(delta, {key for name in STREAMS for key in tables[name]["batches"]}),
            misfits=misfits(delta, tables["joined"]["tokens"]),
            typed=tuple(self._pipeline.output.columns),
            alone=alone,
            processed=processed(self._pipeline, span),
            collected=frozenset(name for name in STREAMS if self._collected(name, span)),
        )
        return Measured(figures, rows, reading)

    def _accounts(self, span: Span) -> tuple[Reading, dict[str, int]]:
        """Where every id is. What seems wrong is read again: an id may just have moved."""
        reading = read(self._lake, self._pipeline, span, self._now)
        first = self._timed("accounts", _accounts_of, reading)
        if not any(count for name, count in first.items() if name.startswith("fault:")):
            return reading, first
        reading = read(self._lake, self._pipeline, span, self._now)
        return reading, agreed(first, self._timed("accounts once more", _accounts_of, reading))

    def _rows(self, reading: Reading, span: Span) -> dict[str, DataFrame]:
        extent = span.extent(int(self._pipeline.registry.bucket))
        joined = self._lake.read("joined", self._lake.delta.version("joined"))  # adapter's columns too
        own = {"joined": joined.where(extent.sql()), "primary": part(self._lake, "primary", extent)}
        return own | {name: reading.rows[name] for name in ("foreign", "registry")}

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


@dataclass(frozen=True)
class Figures:
    """What was measured of a date.

    `tables`, `streams`, `accounts`: figures by table, by stream, and of all ids; `fields` by stream; `columns` of
    `joined` with types;
    `quarantine`: quarantined records, and all records, of the batches that landed the date, None where that is unknown;
    `misfits`: values that did not fit by typed column, and rows, of the batches that published the date, None likewise;
    `end`: the last moment that events of the date may have (seconds since 1970), or now; `collected`: streams of which
    rows of the date may have been collected, so that their figures say nothing; `typed`: columns of output.columns;
    `alone`: the pipeline is of one stream; `processed`: of per-key processing, None where there is none.
    """

    day: date
    tables: Mapping[str, Mapping[str, Any]]
    streams: Mapping[str, Mapping[str, int]]
    accounts: Mapping[str, int]
    end: float
    fields: Mapping[str, Fields] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)
    quarantine: tuple[int, int] | None = None
    misfits: tuple[Mapping[str, int], int] | None = None
    collected: frozenset[str] = frozenset()
    typed: tuple[str, ...] = ()
    alone: bool = False
    processed: Processed | None = None


@dataclass(frozen=True)
class Processed:
    """Ids of signals that are there twice; faults of the sums, in sentences; late events of the date.

    `unknown`: why nothing is known, or empty.
    """

    twice: int = 0
    faults: tuple[str, ...] = ()
    late: int = 0
    unknown: str = ""


def processed(pipeline: Pipeline, span: Span) -> Processed | None:
    """The figures of a date; None for a pipeline that processes nothing by key."""
    if pipeline.process is None:
        return None
    tables = ReadableTables(folder(pipeline))
    if not tables.exists("signals"):
        return Processed(unknown="nothing was processed yet: run `clickjoin process`, or switch its DAG on")
    ids = tables.read("signals", columns=["id"])["id"]
    late = tables.read("late", [("event_time", ">=", span.low), ("event_time", "<", span.high)], ["reason"])
    try:
        faults = check(pipeline).faults
    except LakeError as error:
        faults = (str(error),)
    behind = pc.sum(pc.not_equal(late["reason"], "no-key")).as_py() or 0
    return Processed(len(ids) - pc.count_distinct(ids).as_py(), faults, behind)


def quarantined(delta: DeltaReader, batches: set[tuple[str, int]]) -> tuple[int, int] | None:
    """Quarantined records, and all records, of some join batches; None where no metrics of them are left."""
    bad = good = seen = 0
    for replica in sorted({replica for replica, _ in batches}):
        numbers = [number for name, number in batches if name == replica]
        where = [("replica", "=", replica), ("sequence", "=", "join"), ("batch", "in", numbers)]
        held = delta.read("metrics", where, ["quarantined", "primary_in", "events_in"])
        sums = {name: pc.sum(held[name]).as_py() or 0 for name in held.schema.names}
        bad, good, seen = bad + sums["quarantined"], good + sums["primary_in"] + sums["events_in"], seen + len(held)
    return (bad, bad + good) if seen else None


def misfits(delta: DeltaReader, tokens: Iterable[str]) -> tuple[dict[str, int], int] | None:
    """Published values that did not fit, by column, and published rows, of the batches of some tokens.

    None where no metrics of them are left, or where the lake is older than the count.
    """
    if "misfits" not in delta.columns("metrics"):
        return None
    found: Counter[str] = Counter()
    rows = 0
    for (replica, sequence), numbers in sorted(_by_sequence(tokens).items()):
        where = [("replica", "=", replica), ("sequence", "=", sequence), ("batch", "in", sorted(numbers))]
        for row in delta.read("metrics", where, ["joined", "misfits"]).to_pylist():
            rows += row["joined"] or 0
            found.update(json.loads(row["misfits"]) if row["misfits"] else {})
    return (dict(found), rows) if rows else None


def _by_sequence(tokens: Iterable[str]) -> dict[tuple[str, str], set[int]]:
    """Numbers of batches by replica and sequence; what is no token, somebody else has written."""
    found: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
    for token in tokens:
        parts = token.split("/")
        if len(parts) == 4 and parts[3].isdecimal():
            found[parts[1], parts[2]].add(int(parts[3]))
    return found


def _of_table(rows: DataFrame, name: str, more: Sequence[str] = (), *, alone: bool = False) -> dict[str, Any]:
    """Figures of one table from one pass: rows, nulls by column (`null:x`), first and last event (microseconds).

    Of `joined` also the `tokens` of its batches and the delay in seconds from event to output (`delay_p50` and so on),
    of `registry` rows with an outcome that there is not, of a stream the `batches` that landed it (replica, number).
    `more`: further columns whose nulls are counted; `alone`: of one stream, whose events name no primary one.
    """
    wanted = {"rows": F.count(F.lit(1)), "low": F.expr("min(unix_micros(event_time))")}
    wanted["high"] = F.expr("max(unix_micros(event_time))")
    required = [column for column in REQUIRED[name] if not (alone and column.startswith("primary_"))]
    for column in dict.fromkeys((*required, *more)):
        wanted[f"null:{column}"] = F.count_if(F.col(f"`{column}`").isNull())
    if name == "joined":
        delay = F.expr("(unix_micros(published_at) - unix_micros(event_time)) / 1e6")
        wanted["tokens"] = F.collect_set("token")
        wanted["delay"] = F.percentile_approx(delay, list(_QUANTILES.values()), _ACCURACY)
    if name == "registry":
        wanted["strange"] = F.expr(f"count_if({STRANGE})")
    if name in ("primary", "foreign"):
        wanted["batches"] = F.expr("collect_set(struct(replica, batch))")
    found: dict[str, Any] = rows.agg(*[column.alias(key) for key, column in wanted.items()]).collect()[0].asDict()
    if "batches" in found:
        found["batches"] = {(row["replica"], row["batch"]) for row in found["batches"]}
    delays = found.pop("delay", None) or [None] * len(_QUANTILES)
    return found | {f"delay_{key}": value for key, value in zip(_QUANTILES, delays, strict=True) if name == "joined"}


def _of_stream(rows: DataFrame, replicas: Sequence[str]) -> dict[str, int]:
    """Figures of a stream's ids: distinct `ids`; `repeats`, which came again; `twice`, landed more than once.

    A replica lands every record once, so records are counted by replica and place, and each replica's repeats are its
    own. By hashes of 64 bits: two of 10 million differ with all but certainty.
    """
    number = " ".join(f"WHEN '{name}' THEN {at}" for at, name in enumerate(replicas))
    places = rows.groupBy(F.expr("xxhash64(replica, source_partition, `offset`)").alias("place")).agg(
        F.count(F.lit(1)).alias("n"),
        F.expr("first(xxhash64(event_id, event_time))").alias("id"),
        F.expr(f"first(CASE replica {number} END)" if number else "first(0)").alias("by"),
    )
    again = " + ".join(f"greatest(count_if(by = {at}) - 1, 0)" for at in range(len(replicas))) or "0"
    each = places.groupBy("id").agg(F.expr(again).alias("again"), F.expr("sum(n - 1)").alias("twice"))
    whole = each.agg(
        F.count(F.lit(1)).alias("ids"),
        F.expr("coalesce(sum(again), 0)").alias("repeats"),
        F.expr("coalesce(sum(twice), 0)").alias("twice"),
    )
    return {name: int(value) for name, value in whole.collect()[0].asDict().items()}


def _accounts_of(reading: Reading) -> dict[str, int]:
    """One pass over every id: `accepted`, of these how many in each place, `nowhere`, `twice`, and faults by kind."""
    counts = {"accepted": "accepted > 0"}
    taken: list[str] = []
    for place, sql in PLACES.items():
        counts[place] = " AND ".join(["accepted > 0", *(f"NOT ({other})" for other in taken), f"({sql})"])
        taken.append(sql)
    gone = f"({has('lost')} OR {has('claim_without_output')})"
    counts["nowhere"] = f"accepted > 0 AND {gone}"
    counts["twice"] = f"accepted > 0 AND {has('two_places')}"
    counts |= {f"fault:{kind}": has(kind) for kind in FAULTS}
    row = (
        id_places.tally(reading)
        .agg(*[F.expr(f"count_if({sql})").alias(name) for name, sql in counts.items()])
        .collect()[0]
    )
    return {name: int(value) for name, value in row.asDict().items()}


def agreed(first: Mapping[str, int], second: Mapping[str, int]) -> dict[str, int]:
    """Two looks as one: all figures of the second, and of what is wrong only what both have found."""
    wrong = {name for name in first if name.startswith("fault:") or name in ("nowhere", "twice")}
    return {name: min(value, first[name]) if name in wrong else value for name, value in second.items()}
