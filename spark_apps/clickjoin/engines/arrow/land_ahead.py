"""Landing ahead: the records of the next batch are read and written while the one before is still looked up.

Files that no commit names are orphans, so that nothing has happened until the batch lands in its turn and commits
them. Whatever its records went by is compared then; where any of it has changed they are read again.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clickjoin.engines.arrow.landing import Written, is_few, write_many
from clickjoin.engines.port import ReadAhead

if TYPE_CHECKING:
    from clickjoin.engines.arrow.lake import ArrowLake
    from clickjoin.engines.context import Context
    from clickjoin.kernel.forgotten import Forgotten
    from clickjoin.model.batch_plan import BatchPlan
    from clickjoin.model.shards import Timeline
    from clickjoin.sources.port import Source

# No plan under way holds such files back from `gc`, which spares any file for an hour: older ones may be about to go.
_LONGEST = 1800.0  # seconds


@dataclass(frozen=True)
class LandedAhead(ReadAhead):
    """Files of a plan's records by stream, and by what they were written: whose records were left out, which shards.

    `begun`: when, in seconds since 1970.
    """

    plan: BatchPlan
    timeline: Timeline
    forgotten: Mapping[str, Forgotten]
    files: Mapping[str, Written]
    begun: float

    def of(self, ctx: Context) -> Mapping[str, Written]:
        """What a batch whose plan is written down may commit as its own: nothing unless it would write the same by now.

        Nor what was written long ago, as before a process was paused (see _LONGEST).
        """
        same = self.plan == ctx.plan and self.timeline == ctx.timeline and self.forgotten == ctx.forgotten
        return self.files if same and abs(time.time() - self.begun) < _LONGEST else {}


def land_ahead(lake: ArrowLake, ctx: Context, sources: Mapping[str, Source]) -> LandedAhead:
    """Have the workers read and write the streams of which this process would not read the few records by itself."""
    begun = time.time()
    streams = [stream for stream, splits in ctx.plan.splits.items() if not is_few(ctx, stream, sources[stream])]
    streams = [stream for stream in streams if not sources[stream].lost(ctx.plan.splits[stream])]
    with ThreadPoolExecutor(max_workers=max(len(streams), 1)) as pool:
        jobs = {stream: pool.submit(write_many, lake, ctx, stream, sources[stream]) for stream in streams}
        files = {stream: job.result() for stream, job in jobs.items()}
    return LandedAhead(ctx.plan, ctx.timeline, ctx.forgotten, files, begun)
