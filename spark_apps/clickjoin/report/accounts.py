"""The sums: every input record and accepted event, each in exactly one place; and how many events batches took up.

A lake whose ids fit into this process is counted by Arrow, and no Spark is started for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from clickjoin.kernel.arrays import bool_array, to_numpy
from clickjoin.kernel.event_key import found_among, micros
from clickjoin.lake.maintenance import newest
from clickjoin.model.extent import timestamp
from clickjoin.model.ids import EVENT_KEY, MICROS, micros_of, moment
from clickjoin.retry.pending import waiting, waiting_rows
from clickjoin.verification.id_places import with_era

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from clickjoin.config import Pipeline
    from clickjoin.lake.delta_reader import DeltaReader
    from clickjoin.lake.spark_reader import SparkReader
    from clickjoin.model.batch_plan import BatchPlan

OUTCOMES = ("joined", "filtered", "unjoinable", "forgotten", "expired", "pending")
_OF = {"forgotten": "stream = 'foreign' AND event_id IS NOT NULL"}


@dataclass(frozen=True)
class Accounts:
    """Counts over all of a pipeline's tables. Records are lines of input; events are distinct ids.

    foreign_records = accepted + repeats + foreign_quarantined, and accepted = joined + filtered + unjoinable +
    forgotten + expired + pending, hold unless `lost` or `doubled` is above zero. `doubled` are ids of two output rows,
    or of one and no record; `collected` such of one row whose record GC may have dropped, by `retention.foreign`.
    `wrong_from`, `wrong_to`: times of the oldest and the newest of those that are lost or doubled.
    """

    primary_records: int
    primary_events: int
    primary_repeats: int
    primary_quarantined: int
    foreign_records: int
    accepted: int
    repeats: int
    foreign_quarantined: int
    joined: int
    filtered: int
    unjoinable: int
    forgotten: int
    expired: int
    pending: int
    lost: int
    doubled: int
    collected: int
    wrong_from: datetime | None = None
    wrong_to: datetime | None = None

    @property
    def agree(self) -> bool:
        """Whether nothing is lost, nothing doubled, and the sums are equal."""
        outcomes = sum(getattr(self, name) for name in OUTCOMES)
        return not self.lost and not self.doubled and outcomes == self.accepted

    def to_dict(self) -> dict[str, Any]:
        """All counts, and whether they agree; of times the date, and the one after, as `verify` takes them."""
        counts = {**asdict(self), "agree": self.agree}
        low, high = counts.pop("wrong_from"), counts.pop("wrong_to")
        dates = {"wrong_from": f"{low:%Y-%m-%d}", "wrong_to": f"{high + timedelta(days=1):%Y-%m-%d}"} if low else {}
        return counts | dates


def kept_since(pipeline: Pipeline, lake: SparkReader, now: datetime) -> datetime:
    """The event time from which on no record can have been dropped from `foreign` by GC (see registry.horizon)."""
    ahead = timedelta(seconds=pipeline.limits.max_skew)
    return min(now, newest(lake.delta, "registry") or now) - timedelta(seconds=pipeline.kept("foreign")) + ahead


def account(lake: SparkReader, replicas: list[str], since: datetime, repeats: float = 0.0) -> Accounts:
    """Count everything, id by id, reading ids only: a small lake in this process, a large one by two Spark jobs.

    `since`: see kept_since. `repeats` (seconds; Pipeline.repeats): where above 0 an id alone names an event, and is
    another one's as far from it.
    """
    if is_small(lake.delta):
        bad, (ids, rows) = _quarantined_here(lake.delta), _primary_events_here(lake.delta)
        counts = _foreign_events_here(lake.delta, replicas, OUTCOMES, since, repeats)
    else:
        bad, (ids, rows) = _quarantined(lake), _primary_events(lake)
        counts = _foreign_events(lake, replicas, since, repeats)
    records = counts.pop("records")
    return Accounts(
        primary_records=rows + bad.get("primary", 0),
        primary_events=ids,
        primary_repeats=rows - ids,
        primary_quarantined=bad.get("primary", 0),
        foreign_records=records + bad.get("foreign", 0),
        repeats=records - counts["accepted"],
        foreign_quarantined=bad.get("foreign", 0),
        **counts,
    )


def _quarantined(lake: SparkReader) -> dict[str, int]:
    whole = lake.read("quarantine").where("COALESCE(part, 0) = 0")
    return {row["stream"]: row["n"] for row in whole.groupBy("stream").agg(F.count("*").alias("n")).collect()}


def _primary_events(lake: SparkReader) -> tuple[int, int]:
    ids = lake.read("primary").groupBy(*EVENT_KEY).count()
    row = ids.agg(F.count("*").alias("ids"), F.sum("count").alias("n")).collect()[0]
    return row["ids"], row["n"] or 0


def _foreign_events(lake: SparkReader, replicas: list[str], since: datetime, repeats: float) -> dict[str, Any]:
    kept = f"event_time >= {timestamp(since)}"
    lost, doubled = "landed AND outcome IS NULL", f"outputs > 1 OR (outputs > 0 AND NOT landed AND {kept})"
    wrong = F.when(F.expr(f"({lost}) OR {doubled}"), F.col("event_time"))
    row = (
        _events(lake, replicas, repeats)
        .agg(
            F.count_if("landed").alias("accepted"),
            F.coalesce(F.sum("records"), F.lit(0)).alias("records"),
            *[F.count_if(F.expr(f"landed AND outcome = '{name}'")).alias(name) for name in OUTCOMES],
            F.count_if(F.expr(lost)).alias("lost"),
            F.count_if(F.expr(doubled)).alias("doubled"),
            F.count_if(F.expr(f"outputs = 1 AND NOT landed AND NOT ({kept})")).alias("collected"),
            F.unix_micros(F.min(wrong)).alias("wrong_from"),
            F.unix_micros(F.max(wrong)).alias("wrong_to"),
        )
        .collect()[0]
    )
    times = {name: None if row[name] is None else moment(row[name]) for name in ("wrong_from", "wrong_to")}
    return row.asDict() | times


def _events(lake: SparkReader, replicas: list[str], repeats: float) -> DataFrame:
    """One row an id: its time, landed, records, outputs (in joined), outcome (the first of OUTCOMES that holds)."""
    parts = [lake.read("foreign").select(*EVENT_KEY, F.lit("foreign").alias("place"))]
    parts += [
        lake.read(name).where(_OF.get(name, "TRUE")).select(*EVENT_KEY, F.lit(name).alias("place"))
        for name in OUTCOMES[:-1]
    ]
    parts += [waiting(lake, replica).select(*EVENT_KEY, F.lit("pending").alias("place")) for replica in replicas]
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.unionAll(part)
    key, named = list(EVENT_KEY), []
    if repeats:
        whole = with_era(whole, whole.where("place = 'joined'"), repeats)
        key, named = ["event_id", "era"], [F.max("event_time").alias("event_time")]
    ids = whole.groupBy(*key).agg(
        *named,
        F.count_if(F.expr("place = 'foreign'")).alias("records"),
        F.count_if(F.expr("place = 'joined'")).alias("outputs"),
        *[F.bool_or(F.expr(f"place = '{name}'")).alias(name) for name in OUTCOMES],
    )
    outcome = F.coalesce(*[F.when(F.col(name), F.lit(name)) for name in OUTCOMES])
    return ids.select(
        "event_time", "records", "outputs", (F.col("records") > 0).alias("landed"), outcome.alias("outcome")
    )


_TIME = pa.timestamp("us", "UTC")
_KEY = list(EVENT_KEY)
MOST_ROWS = 5_000_000  # of all tables together: some hundred bytes each, for seconds


def is_small(delta: DeltaReader, tables: Sequence[str] = ("primary", "foreign", *OUTCOMES, "quarantine")) -> bool:
    """Whether some tables, by default all that is counted, hold so few rows that this process counts them."""
    return sum(delta.rows(name) for name in tables) <= MOST_ROWS


def _quarantined_here(delta: DeltaReader) -> dict[str, int]:
    """Bad records by stream; one that was too long for one row counts once."""
    rows = delta.read("quarantine", columns=["stream", "part"])
    whole = rows.filter(pc.equal(pc.fill_null(rows["part"].cast(pa.int64()), 0), 0))
    counted = whole.group_by("stream").aggregate([([], "count_all")])
    return dict(zip(counted["stream"].to_pylist(), counted["count_all"].to_pylist(), strict=True))


def _primary_events_here(delta: DeltaReader) -> tuple[int, int]:
    """Distinct primary events, and their rows."""
    rows = _keys(delta.read("primary", columns=_KEY))
    return int(rows.group_by(_KEY).aggregate([]).num_rows), int(rows.num_rows)


def _foreign_events_here(
    delta: DeltaReader, replicas: Sequence[str], outcomes: Sequence[str], since: datetime, repeats: float
) -> dict[str, Any]:
    """As accounts.account has them: accepted, records, each outcome, lost, doubled, collected, wrong_from, wrong_to."""
    ids = _by_id(_places(delta, replicas, outcomes), outcomes, repeats)
    records, outputs = (to_numpy(ids[f"{name}_sum"]) for name in ("records", "outputs"))
    times = to_numpy(ids["event_time_max"].cast(pa.int64()))
    kept = times >= micros_of(since)
    landed, left = records > 0, np.ones(ids.num_rows, np.bool_)
    counts: dict[str, Any] = {"accepted": int(landed.sum()), "records": int(records.sum())}
    for name in outcomes:  # the first that holds
        there = to_numpy(ids[f"{name}_sum"]) > 0
        counts[name] = int((landed & left & there).sum())
        left &= ~there
    lost, doubled = landed & left, (outputs > 1) | ((outputs > 0) & ~landed & kept)
    wrong = times[lost | doubled]
    return counts | {
        "lost": int(lost.sum()),
        "doubled": int(doubled.sum()),
        "collected": int(((outputs == 1) & ~landed & ~kept).sum()),
        "wrong_from": moment(int(wrong.min())) if len(wrong) else None,
        "wrong_to": moment(int(wrong.max())) if len(wrong) else None,
    }


def _places(delta: DeltaReader, replicas: Sequence[str], outcomes: Sequence[str]) -> list[tuple[str, pa.Table]]:
    found = [("records", delta.read("foreign", columns=_KEY))]
    for name in outcomes:
        if name == "pending":
            version = delta.version(name)
            found += [(name, rows) for replica in replicas for rows in waiting_rows(delta, version, replica, _KEY)]
        elif name == "forgotten":
            rows = delta.read(name, [("stream", "=", "foreign")], _KEY)
            found.append((name, rows.filter(pc.is_valid(rows["event_id"]))))
        else:
            found.append((name, delta.read(name, columns=_KEY)))
    return [(name, _keys(rows)) for name, rows in found]


def _by_id(places: Sequence[tuple[str, pa.Table]], outcomes: Sequence[str], repeats: float) -> pa.Table:
    """One row an event: how many rows each place has of it, `outputs` (those of joined), its latest time."""
    parts, former = [], _former(dict(places)["joined"], repeats) if repeats else None
    for name, rows in places:
        counts: dict[str, Any] = {}
        for column in ("records", "outputs", *outcomes):
            here = column == name or (column == "outputs" and name == "joined")
            counts[column] = np.full(rows.num_rows, int(here), np.int64)
        if former is not None:
            counts["era"] = np.where(found_among(rows, former), micros(rows), 0)
        for column, values in counts.items():
            rows = rows.append_column(column, pa.array(values))
        parts.append(rows.append_column("at", rows["event_time"]))
    whole = pa.concat_tables(parts)
    grouped = whole.group_by(["event_id", "era"] if repeats else _KEY)
    sums: list[Any] = [(column, "sum") for column in ("records", "outputs", *outcomes)]
    return grouped.aggregate([*sums, ("at", "max")]).rename_columns({"at_max": "event_time_max"})


def _former(rows: pa.Table, repeats: float) -> pa.Table:
    """Rows of the output that are of former events of their ids; as verification has it (id_places.with_era)."""
    ids = to_numpy(rows["event_id"].combine_chunks().dictionary_encode().indices)
    times = micros(rows)
    order = np.lexsort((times, ids))
    apart = np.diff(times[order]) >= round(repeats * MICROS)
    former = np.zeros(rows.num_rows, np.bool_)
    former[order[:-1]] = (np.diff(ids[order]) == 0) & apart
    return rows.filter(bool_array(former))


def _distinct_here(parts: Sequence[pa.Table], waits: Sequence[pa.Table]) -> tuple[int, int]:
    """Distinct events of some tables of keys, and how many of them are among those that wait."""
    events = pa.concat_tables([_keys(part) for part in parts]).group_by(_KEY).aggregate([])
    among = [_keys(part) for part in waits]
    if not among or not events.num_rows:
        return int(events.num_rows), 0
    return int(events.num_rows), int(events.join(pa.concat_tables(among), _KEY, join_type="left semi").num_rows)


def _keys(rows: pa.Table) -> pa.Table:
    return rows.select(_KEY).cast(pa.schema([("event_id", pa.string()), ("event_time", _TIME)]))


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
    if is_small(lake.delta, sorted(set(_TABLES.values()))):
        return _batches_here(lake.delta, batches, sequences)
    parts = [_taken_up(lake, batches, sequence) for sequence in sequences]
    whole = parts[0] if len(parts) == 1 else parts[0].unionAll(parts[1])
    waits = waiting(lake, batches.replica).select(*EVENT_KEY, F.lit(True).alias("waits"))
    events = whole.distinct().join(waits, list(EVENT_KEY), "left")
    row = events.agg(F.count(F.lit(1)).alias("n"), F.count("waits").alias("waits")).collect()[0]
    return Distinct(row["n"], row["waits"])


def _batches_here(delta: DeltaReader, batches: Batches, sequences: Sequence[str]) -> Distinct:
    keys, parts = list(EVENT_KEY), []
    for sequence in sequences:
        first, last = batches.spans[sequence]
        filters = [("replica", "=", batches.replica), ("batch", ">=", first), ("batch", "<=", last)]
        filters += [("sequence", "=", sequence)] if sequence == "retry" else []
        parts.append(delta.read(_TABLES[sequence], filters, keys))
    waits = list(waiting_rows(delta, delta.version("pending"), batches.replica, keys))
    return Distinct(*_distinct_here(parts, waits))


def _taken_up(lake: SparkReader, batches: Batches, sequence: str) -> DataFrame:
    first, last = batches.spans[sequence]
    rows = lake.read(_TABLES[sequence]).where(F.col("replica") == batches.replica)
    rows = rows.where(F.col("batch").between(first, last))
    return (rows.where(F.col("sequence") == sequence) if sequence == "retry" else rows).select(*EVENT_KEY)
