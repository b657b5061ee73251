"""Claiming an outcome: its files where tasks have written them, else its rows (Photon, section 2.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clickjoin.joiner.port import CLAIMED, Outcome
from clickjoin.model import extent as extents
from clickjoin.registry.claim import claim, claim_written

if TYPE_CHECKING:
    from clickjoin.batch_context import Context


def claim_outcome(ctx: Context, outcome: Outcome) -> bool:
    """Claim every event of an outcome that is joined, filtered or given up; whether all of them are this batch's now.

    If not, others own some, or a copy of this batch came first: then the registry decides what it may publish.
    """
    tallies = [outcome.tallies[status] for status in CLAIMED if status in outcome.tallies]
    extent = extents.merge(tally.extent for tally in tallies)
    shards = {shard for tally in tallies for shard in tally.shards}
    if outcome.files:
        return claim_written(ctx, outcome.files_of("registry"), outcome.files.checked_against, extent, shards)
    from pyspark.sql import functions as F

    candidates = outcome.rows().where(F.col("status").isin(*CLAIMED)).withColumn("outcome", F.col("status"))
    return claim(ctx, candidates, extent, shards, outcome.fits_driver)
