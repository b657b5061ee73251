"""Where an id alone names an event, whatever its time: its claim can lie in any bucket of its shard.

Claims lie in buckets by when their batch was planned, so that they age and go as those of other pipelines do.
"""

from __future__ import annotations

from collections.abc import Set
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clickjoin.batch_context import Context


def one_shard_each(ctx: Context) -> bool:
    """Whether each claim of the registry, as it was read before, lies in the shard of its id.

    Where ids have no time, only until the lake is first resharded. A batch may have begun before that, and its own
    timeline not say so: this looks again. Whoever claimed by a later entry had it written first, so a look that comes
    after the registry's sees it.
    """
    return not ctx.pipeline.by_id or ctx.lake.delta.rows("shard_timeline") == 1


def shards_of(ctx: Context, shards: Set[int]) -> Set[int] | None:
    """The shards that claims of some ids lie in, of a registry that was read before, by those of now; None: any."""
    return shards if one_shard_each(ctx) else None
