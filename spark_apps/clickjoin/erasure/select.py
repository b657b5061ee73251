"""Which events a request means: found in every table, since a record may be in one only.

A foreign event that names a forgotten primary event is forgotten with it: its row of the output holds what an adapter
made of both records, and nothing says which part of it is whose.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from clickjoin.erasure.wanted import Condition, Wanted, word
from clickjoin.forgotten.known import STREAMS, Events, Key, as_arrow
from clickjoin.kernel.forgotten import digest
from clickjoin.kernel.handshake import checked
from clickjoin.kernel.typed_columns.by_line import keep_matching
from clickjoin.model.errors import ConfigError
from clickjoin.model.ids import EVENT_KEY
from clickjoin.model.places import TOUCHES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from clickjoin.lake.spark_reader import SparkReader

MOST = 1_000_000
_RECORDS = {"primary": ("primary",), "foreign": ("foreign", "pending", "filtered", "unjoinable", "expired")}
_TABLES = {"primary": ("primary",), "foreign": (*_RECORDS["foreign"], "joined")}
_KEY = "event_id STRING, event_time TIMESTAMP"


def select(lake: SparkReader, wanted: Wanted) -> Events:
    """The events that are meant, and bad records that hold a value or an id. Errors: ConfigError for too many."""
    keys = {name: _keys(_found(lake, name, wanted)) for name in STREAMS}
    keys["foreign"] |= named_by(lake, keys["primary"])
    return Events(keys, _bad(lake, wanted))


def named_by(lake: SparkReader, primaries: frozenset[Key]) -> frozenset[Key]:
    """Foreign events that name one of these primary events, or have it among their touches (none of one stream).

    One whose primary event's time is not known, if it is not older.
    """
    if not primaries:
        return frozenset()
    held = lake.spark.createDataFrame(as_arrow(primaries)).selectExpr("event_id AS p_id", "event_time AS p_time")
    on = F.expr("primary_id = p_id AND COALESCE(primary_time = p_time, event_time >= p_time)")
    tables = [lake.read(name) for name in _some(lake, _TABLES["foreign"])]
    rows = [table.select(*EVENT_KEY, "primary_id", "primary_time") for table in tables]
    for table in (table for table in tables if TOUCHES in table.columns):
        each = table.selectExpr(*EVENT_KEY, f"explode({TOUCHES}) one")
        rows.append(each.selectExpr(*EVENT_KEY, "one.event_id primary_id", "one.event_time primary_time"))
    return _keys([each.join(held, on, "left_semi").select(*EVENT_KEY) for each in rows])


def _found(lake: SparkReader, stream: str, wanted: Wanted) -> list[DataFrame]:
    """Keys of events of a stream that are meant."""
    parts = [
        _matching(lake, name, one)
        for one in wanted.conditions
        for name in _some(lake, _RECORDS.get(one.stream, ("joined",)))
        if stream == ("foreign" if one.stream == "joined" else one.stream)
    ]
    if wanted.ids:
        ids = lake.spark.createDataFrame([(one,) for one in sorted(wanted.ids)], "event_id STRING")
        tables = _some(lake, _TABLES[stream])
        parts += [lake.read(name).select(*EVENT_KEY).join(ids, ["event_id"], "left_semi") for name in tables]
    return parts


def _matching(lake: SparkReader, name: str, one: Condition) -> DataFrame:
    rows = lake.read(name)
    if one.column not in rows.columns:
        raise ConfigError(f"table `{name}` has no column {one.column}", remedy=f"It has {', '.join(rows.columns)}")
    column = F.col(f"`{one.column}`")
    text = (F.to_json(column) if one.column == TOUCHES else column.cast("string")).alias("text")
    return rows.select(*EVENT_KEY, text).mapInArrow(checked(keep_matching(one.test)), _KEY)


def _some(lake: SparkReader, tables: Iterable[str]) -> list[str]:
    return [name for name in tables if lake.delta.rows(name)]


def _keys(parts: list[DataFrame]) -> frozenset[Key]:
    if not parts:
        return frozenset()
    whole = reduce(lambda left, right: left.unionAll(right), parts).distinct().limit(MOST + 1)
    rows = whole.select("event_id", F.unix_micros("event_time").alias("at")).collect()
    if len(rows) > MOST:
        raise ConfigError(f"more than {MOST:,} events are meant", remedy="Name fewer at a time")
    return frozenset((row["event_id"], row["at"]) for row in rows)


def _bad(lake: SparkReader, wanted: Wanted) -> dict[str, frozenset[str]]:
    """Bad records, by stream, that hold one of the values or ids as a whole word."""
    found: dict[str, set[str]] = {name: set() for name in STREAMS}
    words = {name: wanted.words(name) for name in STREAMS}
    if any(words.values()):
        for batch in lake.delta.batches("quarantine", None, ["stream", "raw"]):
            rows = pa.Table.from_batches([batch])
            for name in (one for one in STREAMS if words[one]):
                own = rows.filter(pc.equal(rows["stream"], name))
                hits = pc.fill_null(pc.match_substring_regex(own["raw"], word(words[name])), False)
                found[name] |= {digest(raw) for raw in own.filter(hits)["raw"].to_pylist()}
    return {name: frozenset(some) for name, some in found.items()}
