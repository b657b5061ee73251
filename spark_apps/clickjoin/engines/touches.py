"""Joins by a key and time as a Spark plan; the same rule as kernel/touches, of all events of a key in one pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import Window
from pyspark.sql import functions as F

from clickjoin.kernel.forgotten import EMPTIED, NO_ID
from clickjoin.kernel.parquet_rows import PREFERRED
from clickjoin.model.ids import COPIES_WITHIN, EVENT_KEY, Around
from clickjoin.model.places import TOUCH, TOUCH_COUNT, TOUCHES
from clickjoin.spark.rows import first_of_key

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import DataFrame

    from clickjoin.lake.spark_reader import SparkReader
    from clickjoin.model.extent import Extent


_TOUCH = ("match_key", "p_id", "p_time")


def pick(
    lake: SparkReader, wanted: DataFrame, extent: Extent, around: Around, version: int | None = None,
    floor: datetime | None = None, named_by: DataFrame | None = None,
) -> DataFrame:  # fmt: skip
    """See engines.lookup.look_up; `primary_id` becomes the id of the primary event that was found.

    With `all` also the columns of kernel.adapter.ALL_TOUCHES.
    """
    held = candidates(lake, named_by or wanted, extent, version, floor)
    if around.pick == "all":
        found = _with_touches(windows_of(wanted, held, around), held)
    else:
        records = held.drop(PREFERRED)  # of those that were picked, and of no others
        found = first_of_key(picked_of(wanted, held, around).join(records, [*_TOUCH]), F.sha2("payload", 256))
        found = found.select(*EVENT_KEY, *_TOUCH[1:], F.col("payload").alias("primary"))
    looked = wanted.join(found, list(EVENT_KEY), "left").withColumn("found", F.col("p_id").isNotNull())
    return looked.withColumns(
        {
            "emptied": ~F.col("found") & F.lit(lake.delta.rows("forgotten") > 0),
            "primary_id": F.coalesce("p_id", "primary_id"),
            "primary_time": F.coalesce("p_time", "primary_time"),
        }
    ).drop("p_id", "p_time")


def candidates(
    lake: SparkReader, wanted: DataFrame, extent: Extent, version: int | None = None, floor: datetime | None = None
) -> DataFrame:
    """Records of primary events with the keys of some events.

    Columns out: match_key, p_id, p_time, payload, preferred.
    """
    if version is None:
        keys = wanted.select(F.col("primary_id").alias("match_key")).where(F.col("match_key") != NO_ID)
        held = lake.read_named("primary", extent, keys)
    else:
        held = lake.read("primary", version).where(extent.sql())
    if floor is not None:
        held = held.where(F.col("event_time") >= F.lit(floor))
    if lake.delta.rows("forgotten") > 0:  # another copy of the event may hold its record still
        emptied = lake.read("primary").where((F.col("payload") == EMPTIED) & F.expr(extent.sql()))
        held = held.join(emptied.select(*EVENT_KEY), list(EVENT_KEY), "left_anti")
    renamed = (F.col("event_id").alias("p_id"), F.col("event_time").alias("p_time"))
    return held.select("match_key", *renamed, "payload", PREFERRED)


def _without_copies(held: DataFrame) -> DataFrame:
    """Primary events, each once: see kernel/touches.without_copies. Columns out: match_key, p_id, p_time, preferred."""
    each = held.groupBy("match_key", "p_id", "p_time").agg(F.max(PREFERRED).alias(PREFERRED))
    before = F.lag("p_time").over(Window.partitionBy("match_key", "p_id").orderBy("p_time"))
    apart = F.unix_micros("p_time") - F.unix_micros("before")
    return each.withColumn("before", before).where(F.col("before").isNull() | (apart > COPIES_WITHIN)).drop("before")


def picked_of(wanted: DataFrame, held: DataFrame, around: Around) -> DataFrame:
    """The primary event of each event that has one (of `all` the last): match_key, event_id and _time, p_id, p_time."""
    if around.pick == "all":
        return windows_of(wanted, held, around).where(f"position = {TOUCH_COUNT}").drop("position", TOUCH_COUNT)
    touches = _without_copies(held)
    if not around.prefer:
        return _nearest(wanted, touches, around)
    liked = F.coalesce(PREFERRED, F.lit(False))
    first = _nearest(wanted, touches.where(liked), around)
    left = wanted.join(first.select(*EVENT_KEY), list(EVENT_KEY), "left_anti")
    return first.unionByName(_nearest(left, touches.where(~liked), around))


def _nearest(wanted: DataFrame, touches: DataFrame, around: Around) -> DataFrame:
    """As picked_of, of primary events that are there once, and none of which goes before another but by its time.

    Both are laid out by key and time, events at the end of their window from which they look, and each takes up the
    nearest primary event, or the one behind that where it is the event itself.
    """
    events = wanted.select("primary_id", *EVENT_KEY).where(F.col("primary_id") != NO_ID)
    is_last = around.pick == "last"
    ordered = Window.partitionBy("match_key").orderBy(*_order(("p_time", "p_id"), is_last=is_last))
    touch = F.struct("p_id", "p_time")
    touches = touches.withColumn("touch", F.struct(touch.alias("one"), F.lag(touch).over(ordered).alias("next")))
    end = F.unix_micros("event_time") + F.lit(around.ahead if is_last else -around.back)
    rows = touches.select(
        F.col("match_key"), F.unix_micros("p_time").alias("at"), F.lit(0).alias("side"), F.col("p_id").alias("id"),
        "touch", F.lit(None).cast("string").alias("event_id"), F.lit(None).cast("timestamp").alias("event_time"),
    ).unionByName(
        events.select(
            F.col("primary_id").alias("match_key"), end.alias("at"), F.lit(1 if is_last else -1).alias("side"),
            F.lit("").alias("id"), F.lit(None).cast(touches.schema["touch"].dataType).alias("touch"), *EVENT_KEY,
        )
    )  # fmt: skip
    nearest = Window.partitionBy("match_key").orderBy(*_order(("at", "side", "id"), is_last=is_last))
    rows = rows.withColumn("touch", F.last("touch", ignorenulls=True).over(nearest)).where("event_id IS NOT NULL")
    own = F.when(F.col("touch.one.p_id") == F.col("event_id"), F.col("touch.next")).otherwise(F.col("touch.one"))
    far = F.unix_micros("event_time") - F.unix_micros("p.p_time")
    fits = (far >= -around.ahead) & (far <= around.back)
    return rows.withColumn("p", own).where(fits).select("match_key", *EVENT_KEY, "p.*")


def windows_of(wanted: DataFrame, held: DataFrame, around: Around) -> DataFrame:
    """The primary events in each event's window, of more than a limit the first and the newest: a row for each.

    Columns out: match_key, event_id, event_time, touch_count, position (from 1 on, in the whole window), p_id, p_time.
    By places among the primary events of a key: it makes no pair but those that are kept.
    """
    touches = _without_copies(held).drop(PREFERRED)
    ordered = Window.partitionBy("match_key").orderBy("p_time", "p_id")
    touches = touches.withColumn("place", F.row_number().over(ordered))
    events = wanted.select(F.col("primary_id").alias("match_key"), *EVENT_KEY).where(F.col("match_key") != NO_ID)
    ends = _with_ends(events, touches, around)
    same = touches.select("match_key", F.col("p_id").alias("event_id"), "place")
    own = ends.join(same, ["match_key", "event_id"]).where("place > low AND place <= high")
    listed = own.groupBy("match_key", *EVENT_KEY).agg(F.sort_array(F.collect_list("place")).alias("own"))
    whole = ends.join(listed, ["match_key", *EVENT_KEY], "left")
    whole = whole.withColumn("own", F.expr("COALESCE(own, CAST(array() AS ARRAY<INT>))"))
    whole = whole.withColumn(TOUCH_COUNT, F.expr("CAST(high - low - size(own) AS BIGINT)")).where(f"{TOUCH_COUNT} > 0")
    newest = f"sequence({TOUCH_COUNT} - {around.limit - 2}L, {TOUCH_COUNT})"
    kept = f"IF({TOUCH_COUNT} > {around.limit}, concat(array(1L), {newest}), sequence(1L, {TOUCH_COUNT}))"
    each = whole.withColumn("position", F.explode(F.expr(kept)))
    passed = "CAST(aggregate(own, low + position, (at, one) -> IF(at >= one, at + 1, at)) AS INT)"
    each = each.withColumn("place", F.expr(passed)).join(touches, ["match_key", "place"])
    return each.select("match_key", *EVENT_KEY, TOUCH_COUNT, "position", "p_id", "p_time")


def _with_ends(events: DataFrame, touches: DataFrame, around: Around) -> DataFrame:
    """Events with the places (low, high] of their windows among the primary events of their key."""
    own = F.unix_micros("event_time")
    ends = F.array(
        F.struct((own - around.back).alias("at"), F.lit(-1).alias("side")),
        F.struct((own + around.ahead).alias("at"), F.lit(1).alias("side")),
    )
    looking = events.withColumn("end", F.explode(ends)).select("match_key", "end.*", *EVENT_KEY)
    rows = looking.unionByName(
        touches.select("match_key", F.unix_micros("p_time").alias("at"), F.lit(0).alias("side"), "place"),
        allowMissingColumns=True,
    )
    upto = Window.partitionBy("match_key").orderBy("at", "side").rowsBetween(Window.unboundedPreceding, 0)
    rows = rows.withColumn("upto", F.coalesce(F.max("place").over(upto), F.lit(0)).cast("bigint"))
    windows = rows.where("event_id IS NOT NULL").groupBy("match_key", *EVENT_KEY)
    return windows.agg(F.min("upto").alias("low"), F.max("upto").alias("high")).where("high > low")


def _with_touches(each: DataFrame, held: DataFrame) -> DataFrame:
    """An event's touches (a row for each) as one row. Columns out: its key, p_id, p_time, primary, ALL_TOUCHES."""
    records = held.select(*_TOUCH, "payload").join(each.select(*_TOUCH).distinct(), [*_TOUCH], "left_semi")
    records = first_of_key(records, F.sha2("payload", 256), key=_TOUCH)
    touch = F.struct("position", F.col("p_id").alias("event_id"), F.col("p_time").alias("event_time"), "payload")
    listed = (
        each.join(records, [*_TOUCH])
        .groupBy(*EVENT_KEY, TOUCH_COUNT)
        .agg(F.sort_array(F.collect_list(touch)).alias("all"))
    )
    last = F.element_at("all", -1)
    found = {"p_id": last["event_id"], "p_time": last["event_time"], "primary": last["payload"]}
    plain = F.transform("all", lambda one: F.struct(*(one[name].alias(name) for name in (*TOUCH, "payload"))))
    own = [column.alias(name) for name, column in found.items()]
    return listed.select(*EVENT_KEY, *own, TOUCH_COUNT, plain.alias(TOUCHES))


def _order(names: tuple[str, ...], *, is_last: bool) -> list[Any]:
    return [F.col(name).asc() if is_last else F.col(name).desc() for name in names]
