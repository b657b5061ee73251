"""Where an id alone names an event, whatever its time: its claim can lie in any bucket of its shard.

Claims lie in buckets by when their batch was planned, so that they age and go as those of other pipelines do.
"""

from __future__ import annotations

from collections.abc import Set
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from clickjoin.batch_context import Context


def one_shard_each(ctx: Context) -> bool:
    """Whether a claim lies in the shard of its id: where ids have no time, only until the lake is first resharded."""
    return not ctx.pipeline.by_id or len(ctx.timeline.entries) == 1


def shards_of(ctx: Context, shards: Set[int]) -> Set[int] | None:
    """The shards that claims of some ids lie in, by the shards that they have now; None: any."""
    return shards if one_shard_each(ctx) else None


def claims_of(ctx: Context, events: DataFrame) -> DataFrame:
    """The claims of some events' ids, in all buckets."""
    claims = ctx.lake.read("registry", ctx.lake.delta.version("registry"))
    ids = events.select("event_id").distinct()
    if one_shard_each(ctx):
        shards = [row["shard"] for row in events.select("shard").distinct().collect()]
        claims = claims.where(F.col("shard").isin(shards))
    return claims.join(ids.hint("broadcast"), ["event_id"], "left_semi")
