"""The rows of a date, as each suite sees them: read once, kept while the date is checked, then let go.

What one row of each asset is:

- joined, primary, foreign, registry: a row of the table of the date, with columns beside the table's own. These are
  event, landed (hashes of an event, and of an event at a replica), age (seconds from the event to the end of the date,
  or to now), delay (seconds from event to output), sampled_record, and fields of the records.
- unjoinable, expired, filtered: a row of the side output of the date, with fields of the records.
- quarantine: a record that a batch of the date has put there (a bad record may have no time of its own).
- ids: an id of the date, with all the places that it is in (see verification.id_places).
- batches: a batch that landed or published some of it, with what it counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from clickjoin.config.quality import SIDES
from clickjoin.kernel.data_skipping import rows_in
from clickjoin.lake.maintenance import newest, sizes
from clickjoin.model.ids import EVENT_KEY, bucket_at, micros_of
from clickjoin.model.places import RECORDS
from clickjoin.model.span import Day
from clickjoin.quality.counted import PROCESSED, batches, processed
from clickjoin.quality.fields import SAMPLED, Fields, profile, sampled
from clickjoin.verification import id_places
from clickjoin.verification.findings import FAULTS, has
from clickjoin.verification.snapshot import Reading, part, read

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from clickjoin.config import Pipeline
    from clickjoin.lake.spark_reader import SparkReader
    from clickjoin.quality.history import History

STREAMS = ("primary", "foreign")
TABLES = (*STREAMS, "joined", "registry")
DERIVED = {
    "joined": ("event", "delay"),
    "primary": ("event", "landed", "age", SAMPLED),
    "foreign": ("event", "landed", "age", SAMPLED),
    "registry": ("event",),
}
# What shipped expectations name, and where every id is.
_ALWAYS = (
    *EVENT_KEY, "replica", "batch", "token", "outcome", "primary_id", "primary_time", "source_partition", "offset",
)  # fmt: skip
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
_NOWHERE = ("lost", "claim_without_output")
_CASTS = {"number": "double", "boolean": "boolean"}
_MOST_FIELDS = 200  # columns of a script that names none

Named = Mapping[str, frozenset[str] | None]  # what people's expectations on an asset name; None: what, is not known


# The frames of the dates that this process checks just now, by the folder of the pipeline's tables.
RUNNING: dict[tuple[str, date], Frames] = {}


@contextmanager
def running(pipeline: Pipeline, day: date, frames: Frames) -> Iterator[None]:
    """Anyone who asks the project for the date gets these frames; they are let go afterwards."""
    RUNNING[pipeline.root, day] = frames
    try:
        yield
    finally:
        RUNNING.pop((pipeline.root, day), None)
        frames.release()


class Frames:
    """The assets of one date. `now`: by the lake's clock; `past`: what fields its records had before."""

    def __init__(
        self, lake: SparkReader, pipeline: Pipeline, day: date, now: datetime, past: History, named: Named
    ) -> None:
        self._lake, self._pipeline, self._now, self._named = lake, pipeline, now, named
        self._known = {stream: past.schema(stream, "fields_kept", "fields_new")[1] for stream in STREAMS}
        self.span = Day(day).span
        self._extent = self.span.extent(int(pipeline.registry.bucket))
        self._kept: dict[str, DataFrame] = {}
        self._shown: dict[str, DataFrame] = {}
        self.rows: dict[str, int] = {}
        self.fields: dict[str, Fields] = {}

    def frame(self, asset: str) -> DataFrame:
        """The rows of an asset, kept from now on."""
        if asset not in self._shown:
            rows = self._rows(asset)
            self._shown[asset] = _judged(rows) if asset == "ids" else self._with_fields(asset, rows)
        return self._shown[asset]

    def _rows(self, asset: str) -> DataFrame:
        if asset not in self._kept:
            self._kept[asset] = self._made(asset).persist()
            self.rows[asset] = self._kept[asset].count()
        return self._kept[asset]

    def _made(self, asset: str) -> DataFrame:
        if asset in TABLES:
            return self._table(asset)
        if asset in SIDES:
            when = self.span.sql("at") if asset == "quarantine" else self._extent.sql()
            return self._lake.read(asset).where(when)
        if asset in PROCESSED:
            return processed(asset, self._lake, self._pipeline, self.span)
        return self._ids() if asset == "ids" else self._batches()

    def release(self) -> None:
        """Let all rows go."""
        for rows in reversed(self._kept.values()):  # first what was made of others: Spark would plan it again
            rows.unpersist()
        self._kept.clear()
        self._shown.clear()

    def total(self, table: str) -> int:
        """Rows of a table that the date's files hold, by their logs alone."""
        return rows_in(self._lake.delta.files(table), self._extent)

    def accounts(self) -> dict[str, int]:
        """Accepted ids by place; `nowhere` and `twice`: those that are lost, and in two places."""
        counts = {name: f"place = '{name}'" for name in PLACES}
        counts |= {"accepted": "accepted", "nowhere": "accepted AND nowhere", "twice": "accepted AND two_places"}
        row = self.frame("ids").agg(*(F.expr(f"count_if({sql})").alias(name) for name, sql in counts.items()))
        return {name: int(value) for name, value in row.collect()[0].asDict().items()}

    def collected(self, stream: str) -> bool:
        """Whether rows of the date may have been collected: it is old enough, and nothing before it is left.

        Old by the same clock as GC's: old logs that are read late are as fresh as their newest event.
        """
        delta, width = self._lake.delta, self._pipeline.registry.bucket
        clock = min(self._now, newest(delta, stream) or self._now)
        old = self.span.low < clock - timedelta(seconds=self._pipeline.kept(stream))
        return old and not any(bucket <= bucket_at(self.span.low, width) for bucket in sizes(delta, stream))

    def _table(self, name: str) -> DataFrame:
        key = "event_id" if self._pipeline.by_id else ", ".join(EVENT_KEY)
        made = {
            "event": f"xxhash64({key})",
            "landed": f"xxhash64(replica, {key})",
            "age": f"{micros_of(min(self.span.high, self._now))} / 1e6 - unix_micros(event_time) / 1e6",
            "delay": "(unix_micros(published_at) - unix_micros(event_time)) / 1e6",
            SAMPLED: sampled(self.total(name), self._pipeline.quality.sample),
        }
        rows = self._rows_of(name)
        small = self.total(name) <= self._pipeline.quality.sample
        return rows.select(
            *(F.col(f"`{column}`") if small else self._shortened(name, column, kind) for column, kind in rows.dtypes),
            *(F.expr(made[column]).alias(column) for column in DERIVED[name]),
        )

    def _rows_of(self, name: str) -> DataFrame:
        if name == "primary":
            return part(self._lake, "primary", self._extent)
        rows = self.reading.rows[name]
        if name == "joined":  # adapter's columns too, as of the reading
            rows = self._lake.read("joined", self._lake.delta.version("joined")).where(self._extent.sql())
        return rows

    def _shortened(self, table: str, column: str, kind: str) -> Column:
        """A column; of one that no expectation names nothing, of whole records whether there is any."""
        named, value = self._named.get(table, frozenset()), F.col(f"`{column}`")
        if named is None or column in named:
            return value
        if column in ("payload", *RECORDS.values()):
            fields = any(name not in DERIVED[table] for name in named)
            return value if fields else F.expr(f"IF(`{column}` IS NULL, NULL, '')").alias(column)
        adapted = column not in self._lake.delta.table(table).names
        return value if adapted or column in _ALWAYS else F.lit(None).cast(kind).alias(column)

    def _with_fields(self, table: str, rows: DataFrame) -> DataFrame:
        """With a column for each field of the records that an expectation names: `item`; in `joined` `foreign.item`."""
        named = self._named.get(table, frozenset())
        if "payload" in rows.columns:
            found = self._fields_of(table if table in STREAMS else "foreign", "payload", named, rows.columns)
            return rows.withColumns(found) if found else rows
        for stream, column in RECORDS.items() if table == "joined" else ():
            mine = named and [n.partition(".")[2] for n in named if n.startswith(f"{stream}.")]
            if column in rows.columns and stream not in rows.columns:
                found = self._fields_of(stream, column, mine, ())
                rows = rows.withColumn(stream, F.struct(*(c.alias(n) for n, c in found.items()))) if found else rows
        return rows

    def _fields_of(
        self, stream: str, text: str, named: Iterable[str] | None, taken: Iterable[str]
    ) -> dict[str, Column]:
        wanted = None if named is None else set(named) - set(taken)
        kinds = self._known[stream]
        if wanted is None or wanted - set(kinds):
            kinds = self.profiled(stream).types() | kinds
        plain = [name for name in kinds if name not in taken and not set(name) & set(".`'\\")][:_MOST_FIELDS]
        chosen = plain if wanted is None else sorted(wanted & set(plain))
        return {name: _value(text, name, kinds[name]) for name in chosen}

    def profiled(self, stream: str) -> Fields:
        """The fields of a stream's records: of all, or of an even sample."""
        if stream not in self.fields:
            self.fields[stream] = profile(self._rows(stream))
        return self.fields[stream]

    @cached_property
    def reading(self) -> Reading:
        """All places of the date's ids, each table at one version."""
        return read(self._lake, self._pipeline, self.span, self._now)

    def _ids(self) -> DataFrame:
        """Where every id is, from the tables' rows as they are kept (where ids alone name events: the output's again).

        What seems wrong is read again, and counts where both have found it: an id may move.
        """
        kept = ("foreign", "registry", *(() if self._pipeline.by_id else ("joined",)))
        rows = self.reading.rows | {name: self._rows(name) for name in kept}
        first = _placed(id_places.tally(replace(self.reading, rows=rows)))
        self._kept["first look"] = first.persist()
        if not first.where("faults > 0").limit(1).count():
            return first
        key = ["event_id"] if self._pipeline.by_id else list(EVENT_KEY)
        wrong = first.where("faults > 0").select(*key, F.col("faults").alias("earlier"))
        second = id_places.tally(read(self._lake, self._pipeline, self.span, self._now)).join(wrong, key, "left")
        return _placed(second.withColumn("faults", F.expr("faults & coalesce(earlier, 0L)")))

    def _batches(self) -> DataFrame:
        landed = [row for name in STREAMS for row in self.frame(name).select("replica", "batch").distinct().collect()]
        tokens = [row["token"] for row in self.frame("joined").select("token").distinct().collect()]
        keys = {(row["replica"], row["batch"]) for row in landed}
        return batches(self._lake, keys, tokens, tuple(self._pipeline.output.columns))


def _placed(tally: DataFrame) -> DataFrame:
    """A row an id: whether it was accepted, its place, and its faults, a bit each."""
    place = " ".join(f"WHEN {sql} THEN '{name}'" for name, sql in PLACES.items())
    rows = tally.withColumn("accepted", F.expr("accepted > 0"))
    return rows.select(*EVENT_KEY, "accepted", F.expr(f"IF(accepted, CASE {place} END, NULL)").alias("place"), "faults")


def _judged(rows: DataFrame) -> DataFrame:
    """With a column for each fault, `joined_id`, and `is_joined` (1 or 0) of accepted ids: of the few that are kept."""
    nowhere = " OR ".join(has(kind) for kind in _NOWHERE)
    return (
        rows.withColumn("joined_id", F.expr("IF(place <=> 'joined', event_id, NULL)"))
        .withColumn("is_joined", F.expr("IF(accepted, IF(place <=> 'joined', 1.0D, 0.0D), NULL)"))
        .withColumn("nowhere", F.expr(f"{nowhere} OR (accepted AND place IS NULL)"))
        .withColumns({kind: F.expr(has(kind)) for kind in FAULTS})
        .withColumn("unaccounted", F.expr("accepted AND (nowhere OR two_places)"))
    )


def _value(text: str, key: str, kind: str) -> Column:
    value = F.get_json_object(F.col(f"`{text}`"), f"$['{key}']")
    return value.try_cast(_CASTS[kind]) if kind in _CASTS else value
