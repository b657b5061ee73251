"""Joins by a key and time, looked at again: whether each event has the primary event that would be picked now."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from clickjoin.engines.touches import candidates, picked_of
from clickjoin.model.ids import COPIES_WITHIN, EVENT_KEY
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
    """Events of a range that have another primary event than would be picked now, or none where there is one.

    `wrong_pick`, a fault: the batch that landed that one was settled before the event's was planned, so it was there to
    be seen; else `late_touch`. Events whose candidates were collected in part are not looked at. None where events name
    their primary event.
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
    wanted = _decided(reading.narrowed(span)).localCheckpoint(eager=False)
    picked = picked_of(wanted, candidates(lake, wanted, extent), around).drop("match_key")
    other = wanted.join(picked, list(EVENT_KEY)).where("NOT (p_id <=> had_id AND p_time <=> had_time)")
    judged = _judged(lake, other, extent).select(*EVENT_KEY, "seen").localCheckpoint(eager=False)
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


def _judged(lake: Lake, other: DataFrame, extent: Extent) -> DataFrame:
    """Events with `seen`: whether their primary event had landed, by the journal, before their batch was planned."""
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
    return decided.join(landed, key, "left").withColumn("seen", F.expr("COALESCE(there < asked, FALSE)"))


def _decided(reading: Reading) -> DataFrame:
    """Events that were joined or given up: their key, and the primary event that each has (`had_id`, `had_time`)."""
    keys = first_of_key(reading.rows["foreign"], "landed_at", "replica", "source_partition", "offset")
    keys = keys.select(*EVENT_KEY, "primary_id")
    joined = reading.rows["joined"].selectExpr(*EVENT_KEY, "primary_id had_id", "primary_time had_time", "token")
    none = ("CAST(NULL AS STRING) had_id", "CAST(NULL AS TIMESTAMP) had_time")
    given_up = reading.rows["unjoinable"].selectExpr(*EVENT_KEY, *none, "token")
    return joined.unionAll(given_up).join(keys, list(EVENT_KEY))
