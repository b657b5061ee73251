"""Taking the records of forgotten events out of every table; and which tables hold one still.

Rows of `primary` and `foreign` stay, emptied: the bytes that they were read from count as read. Claims stay: they hold
no record, and without them an event that is read again would be joined again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from clickjoin.forgotten.known import STREAMS, Events, Key, as_arrow
from clickjoin.kernel.forgotten import EMPTIED, NO_ID, WHY
from clickjoin.lake.merge_rows import delete_rows, update_rows
from clickjoin.model import failpoint
from clickjoin.model.extent import Extent
from clickjoin.model.ids import bucket_of, moment
from clickjoin.spark.views import named

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from clickjoin.lake import SparkTables
    from clickjoin.lake.spark_reader import SparkReader

_BY_KEY = "t.event_id = s.event_id AND t.event_time = s.event_time"
_BY_DIGEST = "t.stream = s.stream AND t.raw IS NOT NULL AND sha2(t.raw, 256) = s.digest"
_RECORD = f"t.payload IS NOT NULL AND t.payload <> '{EMPTIED}'"
_QUARANTINE = "quarantine"


@dataclass(frozen=True)
class _Rule:
    """What is done to a table's rows of a stream's events: columns are set, or, where none are named, rows go.

    `holds`: whether a row (`t`) holds a record.
    """

    table: str
    stream: str
    holds: str
    values: Mapping[str, str] = field(default_factory=dict)


_RULES = (
    _Rule("primary", "primary", _RECORD, {"payload": f"'{EMPTIED}'"}),
    _Rule("foreign", "foreign", _RECORD, {"payload": f"'{EMPTIED}'", "primary_id": f"'{NO_ID}'"}),
    _Rule("findings", "foreign", _RECORD, {"payload": "NULL", "primary_id": "NULL"}),
    _Rule("removed_duplicates", "foreign", "TRUE"),
    _Rule("pending", "foreign", _RECORD),
    _Rule("unjoinable", "foreign", _RECORD),
    _Rule("expired", "foreign", _RECORD),
    _Rule("filtered", "foreign", _RECORD),
    _Rule("joined", "foreign", "TRUE"),
)


def sweep(lake: SparkTables, events: Events, bucket_seconds: int) -> dict[str, int]:
    """Empty or remove all rows that hold a record of these events; returns how many by table. It can be repeated."""
    done: dict[str, int] = {}
    for rule in _RULES:
        keys = events.of(rule.stream)
        if keys and lake.delta.rows(rule.table):
            with named(_frame(lake, keys)) as view:
                on = f"{_BY_KEY} AND {lake.terms(rule.table, _extent(keys, bucket_seconds), 't')}"
                if rule.values:
                    done[rule.table] = update_rows(lake, rule.table, view, f"{on} AND {rule.holds}", rule.values)
                else:
                    done[rule.table] = delete_rows(lake, rule.table, view, on)
        failpoint.reach(f"swept-{rule.table}")
    if any(events.digests.values()):
        with named(_digests(lake, events)) as view:
            values = {"raw": "NULL", "detail": f"'{WHY}'"}
            done[_QUARANTINE] = update_rows(lake, _QUARANTINE, view, _BY_DIGEST, values)
    return {name: count for name, count in done.items() if count}


def left(lake: SparkReader, events: Events, bucket_seconds: int) -> dict[str, int]:
    """How many rows hold a record of these events, by table."""
    found: dict[str, int] = {}
    for rule in _RULES:
        keys = events.of(rule.stream)
        if keys and lake.delta.rows(rule.table):
            terms = lake.terms(rule.table, _extent(keys, bucket_seconds), "t")
            rows = lake.read(rule.table).alias("t").where(terms).where(rule.holds)
            found[rule.table] = rows.join(_frame(lake, keys), ["event_id", "event_time"], "left_semi").count()
    if any(events.digests.values()):
        bad = lake.read(_QUARANTINE).selectExpr("stream", "sha2(raw, 256) AS digest").where("digest IS NOT NULL")
        found[_QUARANTINE] = bad.join(_digests(lake, events), ["stream", "digest"], "left_semi").count()
    return {name: count for name, count in found.items() if count}


def _frame(lake: SparkReader, keys: frozenset[Key]) -> DataFrame:
    return lake.spark.createDataFrame(as_arrow(keys))


def _digests(lake: SparkReader, events: Events) -> DataFrame:
    rows = [(name, one) for name in STREAMS for one in sorted(events.digests.get(name, ()))]
    return lake.spark.createDataFrame(rows, "stream STRING, digest STRING")


def _extent(keys: frozenset[Key], bucket_seconds: int) -> Extent:
    times = [at for _, at in keys]
    buckets = tuple(sorted({bucket_of(at, bucket_seconds) for at in times}))
    return Extent(len(keys), buckets, moment(min(times)), moment(max(times)))
