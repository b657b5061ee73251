"""Recovery (Photon, section 3.3.3): batches of a sequence of their own, worked from rows of table `findings`.

Every step can be repeated, and stands in an order in which a crash leaves what the next verification finds: a claim
without output is taken away before its event is dispatched again (cut short, the event is `lost`, and dispatched
then); a row that is doubled is kept in `doubles` before it leaves `joined`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from clickjoin import faults
from clickjoin.context import Context
from clickjoin.dispatcher.dispatcher import Clock, Dispatcher
from clickjoin.dispatcher.plan import BatchPlan, TableSlice
from clickjoin.event_store.landing import measured
from clickjoin.joiner.adapter import load_adapter
from clickjoin.lake.extent import Extent
from clickjoin.lake.views import named
from clickjoin.registry.boundary import expired_sql, load_boundary
from clickjoin.registry.shards import load_timeline
from clickjoin.tables import REGISTRY
from clickjoin.verification.doubles import remove
from clickjoin.verification.journals import Journals, planned_now, settled_now, text
from clickjoin.verification.reading import KEY, part
from clickjoin.verification.reland import reland, seal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from clickjoin.config import Pipeline
    from clickjoin.lake import Lake
    from clickjoin.sources.base import Source
    from clickjoin.verification.pieces import Piece

Say = Callable[[str], None]
_JOURNAL = "batches"


class Recovery:
    """The recovery of one replica."""

    def __init__(self, lake: Lake, pipeline: Pipeline, replica: str, say: Say, clock: Clock) -> None:
        self._lake, self._pipeline, self._say = lake, pipeline, say
        self._dispatcher = Dispatcher(pipeline, lake.small, replica, "recover", clock=clock)

    def resume(self) -> None:
        """Finish a recovery that was cut short: what was asked for once is done."""
        plan = self._dispatcher.unsettled()
        if plan:
            self._say(f"{plan.token} was cut short: it goes on")
            self._carry_out(plan)

    def run(self, micros: int) -> dict[str, int]:
        """Repair what the verification of that time found; returns how much by kind."""
        limit = self._pipeline.batch.max_events
        part = TableSlice("findings", self._lake.small.version("findings"), micros, limit)
        plan = self._dispatcher.next_of_table(part)
        return self._carry_out(plan) if plan else {}

    def reland(self, wanted: Sequence[Piece], sources: Mapping[str, Source], micros: int) -> int:
        """Land records again that are in no table; returns how many, and good ones among them are `lost` ids until
        the next look sends them on their way.
        """
        part = TableSlice(_JOURNAL, self._lake.small.version(_JOURNAL), micros, len(wanted))
        plan = self._dispatcher.next_of_table(part)
        if plan is None or plan.pending != part:
            return 0
        timeline = load_timeline(self._lake.small)
        ctx = Context(self._pipeline, self._lake, plan, load_adapter(self._pipeline.adapter), timeline, {})
        done = reland(ctx, sources, wanted)
        faults.reach("relanded")
        seal(ctx)
        self._dispatcher.settled(plan, {})
        self._say(f"{plan.token}: {done} records that no table held were read again")
        return done

    def _carry_out(self, plan: BatchPlan) -> dict[str, int]:
        small = self._lake.small
        # Read after the plan was written: whoever moves the boundary later sees this batch as unsettled, and waits.
        timeline, boundary = load_timeline(small), load_boundary(small)
        ctx = Context(self._pipeline, self._lake, plan, load_adapter(self._pipeline.adapter), timeline, boundary)
        faults.reach("planned")
        if plan.pending and plan.pending.table == _JOURNAL:  # what is missing still, the look that follows finds
            seal(ctx)
            done: dict[str, int] = {}
        else:
            done = recover(ctx, self._say)
        faults.reach("recovered")
        self._dispatcher.settled(plan, {})
        return done


def recover(ctx: Context, say: Say) -> dict[str, int]:
    """Carry out a recovery batch; returns how many events it repaired, by kind."""
    part_ = ctx.plan.pending
    if part_ is None:
        return {}
    found = ctx.lake.read("findings").where(f"run = {text(f'{ctx.plan.replica}/{part_.due}')} AND action IS NOT NULL")
    rows = found.orderBy(*KEY, "kind", "token").limit(part_.limit).localCheckpoint(eager=False)
    rows = rows.where(f"NOT COALESCE({_open(ctx)}, FALSE)")  # a claim of a batch in flight is never touched
    doable = {"again": again, "claim": give_back, "remove": remove}
    done: dict[str, int] = {}
    for action, work in doable.items():
        for kind, count in work(ctx, rows.where(F.col("action") == action)).items():
            say(f"{ctx.plan.token}: {count} {kind}: {_SAID[action]}")
            done[kind] = count
    ctx.lake.fix("registry", ctx.plan.txn)  # one that still has the claims that went is known by its absence
    return done


_SAID = {
    "again": "dispatched again, and wait to be joined",
    "claim": "have their claim again",
    "remove": "rows too many moved to `doubles`",
}


def _open(ctx: Context) -> str:
    small, name = ctx.lake.small, ctx.plan.pipeline
    return f"action = 'again' AND {Journals(name, settled_now(small, name), planned_now(small, name)).open_sql()}"


def _by_kind(rows: DataFrame) -> dict[str, int]:
    counted = rows.select("kind", *KEY).distinct().groupBy("kind").count().collect()
    return {row["kind"]: row["count"] for row in counted}


def again(ctx: Context, rows: DataFrame) -> dict[str, int]:
    """Take away the claims that have no output, then let their events, and lost ones, wait as if they were new."""
    own, _ = measured(rows)
    if not own.rows:
        return {}
    with named(rows.where("token IS NOT NULL")) as view:
        ctx.lake.delete_matched("registry", view, own.sql("t"))
    faults.reach("released")
    ctx.lake.append("pending", _waiting(ctx, rows, own), ctx.plan.txn)
    faults.reach("dispatched")
    return _by_kind(rows)


def _waiting(ctx: Context, rows: DataFrame, own: Extent) -> DataFrame:
    """New rows of `pending`, in a round of their own: it is the newest that counts."""
    first = Window.partitionBy(*KEY).orderBy("kind", "token")
    unique = rows.withColumn("_nth", F.row_number().over(first)).where("_nth = 1").drop("_nth", "outcome")
    history = part(ctx.lake, "pending", own).groupBy(*KEY).agg(F.max("round").alias("last_round"))
    return unique.join(history, list(KEY), "left").withColumns(
        {
            "round": F.coalesce(F.col("last_round") + 1, F.lit(0)),
            "attempt": F.lit(0),
            "first_seen": F.lit(ctx.plan.planned_at),
            "state": F.lit("waiting"),
            "outcome": F.lit(None).cast("string"),
            "due_at": F.lit(ctx.plan.planned_at),
            "sequence": F.lit(ctx.plan.sequence),
            "batch": F.lit(ctx.plan.number).cast("bigint"),
            "replica": F.lit(ctx.plan.replica),
        }
    )


def give_back(ctx: Context, rows: DataFrame) -> dict[str, int]:
    """Put claims back that were lost, as their rows name them; never below the boundary."""
    rows = rows.where(f"NOT {expired_sql(ctx.boundary)}").localCheckpoint(eager=False)
    own, shards = measured(rows)
    if not own.rows:
        return {}
    with named(rows.select(*REGISTRY.names)) as view:
        ctx.lake.insert_new(view, own.sql("t", shards), ctx.plan.txn)
    ctx.lake.fix("registry", ctx.plan.txn)  # so that a late copy of this batch inserts nothing any more
    faults.reach("returned")
    there = part(ctx.lake, "registry", own).select(*KEY)
    return _by_kind(rows.join(there, list(KEY), "left_semi"))
