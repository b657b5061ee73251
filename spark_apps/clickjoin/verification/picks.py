"""Joins by a key and time, looked at again: whether each event has the primary events that would be picked now."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from clickjoin.engines.touches import candidates, picked_of, windows_of
from clickjoin.model.ids import COPIES_WITHIN, EVENT_KEY, Around
from clickjoin.model.places import TOUCH_COUNT, TOUCHES
from clickjoin.model.span import Span
from clickjoin.registry.boundary import load_bounds
from clickjoin.spark.rows import first_of_key
from clickjoin.verification.findings import LATE_TOUCH, SAMPLES, WRONG_PICK, Count, sample

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from clickjoin.config import Pipeline
    from clickjoin.engines.port import Lake
    from clickjoin.model.extent import Extent
    from clickjoin.verification.snapshot import Reading


def counts(lake: Lake, pipeline: Pipeline, reading: Reading) -> tuple[Count, ...]:
    """Events of a range that have other primary events than would be picked now, or none where there is one.

    `wrong_pick`, a fault: the batch that landed one that is missing was settled before the event's was planned, so it
    was there to be seen, or all were that there are; else `late_touch`. Events whose candidates were collected in part
    are not looked at. None where events name their primary event.
    """
    around = pipeline.around
    if around is None or not around.pick:
        return ()
    _, floor = load_bounds(lake.delta)
    back, ahead = (timedelta(microseconds=each) for each in (around.back + COPIES_WITHIN, around.ahead))
    low = max(reading.span.low, floor + back) if floor else reading.span.low
    if low >= reading.span.high:
        return ()
    span = Span(low, reading.span.high)
    extent = Span(low - back, span.high + ahead).extent(int(pipeline.registry.bucket))
    near = reading.narrowed(span)
    if around.pick == "all":  # a reading has the columns that every lake has
        near.rows["joined"] = lake.read("joined").where(f"{extent.sql()} AND {span.sql()}")
    wanted = _decided(near, around).localCheckpoint(eager=False)
    held = candidates(lake, wanted, extent)
    now = wanted.join(_now(wanted, held, around), list(EVENT_KEY), "left")
    other = now.where("NOT (now <=> had)").localCheckpoint(eager=False)
    judged = _judged(lake, other, held, extent, around).localCheckpoint(eager=False)
    checked = wanted.count()
    return tuple(
        Count(
            kind, rows.count(), checked, fault=fault, samples=sample(rows.orderBy(*EVENT_KEY).limit(SAMPLES).collect())
        )
        for kind, fault, rows in (
            (WRONG_PICK, True, judged.where("seen")),
            (LATE_TOUCH, False, judged.where("NOT seen")),
        )
    )


def _now(wanted: DataFrame, held: DataFrame, around: Around) -> DataFrame:
    """What would be picked now: event_id, event_time, now (as `had` of _decided)."""
    if around.pick != "all":
        picked = picked_of(wanted, held, around)
        return picked.selectExpr(*EVENT_KEY, "array(struct(1L AS position, p_id, p_time)) now")
    each = F.sort_array(F.collect_list(F.struct("position", "p_id", "p_time")))
    return windows_of(wanted, held, around).groupBy(*EVENT_KEY).agg(each.alias("now"))


def _judged(lake: Lake, other: DataFrame, held: DataFrame, extent: Extent, around: Around) -> DataFrame:
    """Events with `seen`: whether a primary event that each lacks, or all that it can have, had landed, by the journal,
    before its batch was planned.
    """
    journal = lake.read("journal").select("replica", "sequence", "batch", "state", "at")
    settled = journal.where("state = 'settled' AND sequence = 'join'").select(
        "replica", "batch", F.col("at").alias("there")
    )
    key = ["p_id", "p_time"]
    rows = lake.read("primary").where(extent.sql())
    rows = rows.selectExpr("event_id p_id", "event_time p_time", "replica", "batch")
    landed = rows.join(settled, ["replica", "batch"]).groupBy(*key).agg(F.min("there").alias("there"))
    planned = journal.where("state = 'planned'").select(
        *(F.col(name).alias(f"of_{name}") for name in ("replica", "sequence", "batch")), F.col("at").alias("asked")
    )
    parts = {"of_replica": "split_part(token, '/', 2)", "of_sequence": "split_part(token, '/', 3)"}
    parts |= {"of_batch": "CAST(split_part(token, '/', 4) AS BIGINT)"}
    decided = other.withColumns({name: F.expr(text) for name, text in parts.items()}).join(planned, list(parts), "left")
    had = "COALESCE(transform(had, one -> struct(one.p_id, one.p_time)), array())"
    lacks = F.expr(f"array_except(transform(now, one -> struct(one.p_id, one.p_time)), {had})")
    far = F.unix_micros("event_time") - F.unix_micros("p_time")
    near = (far >= -around.ahead) & (far <= around.back + COPIES_WITHIN) & (F.col("match_key") == F.col("primary_id"))
    asked = decided.select(*EVENT_KEY, "primary_id", "asked", F.coalesce(lacks, F.array()).alias("lacks"))
    each = asked.join(held.select("match_key", *key).distinct().join(landed, key, "left"), near, "left")
    seen, lacked = F.expr("COALESCE(there < asked, FALSE)"), F.expr("array_contains(lacks, struct(p_id, p_time))")
    judged = each.groupBy(*EVENT_KEY).agg(F.bool_or(seen & lacked).alias("one"), F.bool_and(seen).alias("all"))
    return judged.selectExpr(*EVENT_KEY, "COALESCE(one, FALSE) OR COALESCE(all, FALSE) seen")


def _decided(reading: Reading, around: Around) -> DataFrame:
    """Events that were joined or given up: their key, and the primary events that each has.

    `had`: an array of (position, p_id, p_time), null where it has none, empty where its row contradicts itself.
    """
    keys = first_of_key(reading.rows["foreign"], "landed_at", "replica", "source_partition", "offset")
    keys = keys.select(*EVENT_KEY, "primary_id")
    had, none = (
        "array(struct(1L AS position, primary_id AS p_id, primary_time AS p_time))",
        "array<struct<position:bigint,p_id:string,p_time:timestamp>>",
    )
    if around.pick == "all":
        last = f"struct(element_at({TOUCHES}, -1).event_id AS p_id, element_at({TOUCHES}, -1).event_time AS p_time)"
        each = f"transform({TOUCHES}, one -> struct(one.position, one.event_id AS p_id, one.event_time AS p_time))"
        own = f"struct(primary_id AS p_id, primary_time AS p_time) <=> {last}"
        had = f"IF({own} AND {TOUCH_COUNT} <=> element_at({TOUCHES}, -1).position, {each}, CAST(array() AS {none}))"
    joined = reading.rows["joined"].selectExpr(*EVENT_KEY, f"{had} had", "token")
    given_up = reading.rows["unjoinable"].selectExpr(*EVENT_KEY, f"CAST(NULL AS {none}) had", "token")
    return joined.unionAll(given_up).join(keys, list(EVENT_KEY))
