"""Recovery (Photon, section 3.3.3): batches of a sequence of their own, worked from rows of table `findings`.

Every step can be repeated, and stands in an order in which a crash leaves what the next verification finds: a claim
without output is taken away before its event is dispatched again (cut short, the event is `lost`, and dispatched
then); a row that is doubled is kept in `removed_duplicates` before it leaves `joined`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from clickjoin.dispatcher.dispatcher import Clock, Dispatcher
from clickjoin.dispatcher.unsettled import unsettled
from clickjoin.engines.context import Context
from clickjoin.engines.extents import bucket_sql, measured
from clickjoin.joiner.adapter import adapter_of
from clickjoin.model import failpoint
from clickjoin.model.batch_plan import BatchPlan, TableSplit
from clickjoin.model.extent import Extent, text
from clickjoin.model.ids import EVENT_KEY
from clickjoin.model.reporter import Reporter
from clickjoin.model.shards import claims_since, expired_sql
from clickjoin.registry.boundary import load_boundary
from clickjoin.registry.shards import load_timeline
from clickjoin.schemas import FINDINGS, REGISTRY
from clickjoin.spark.rows import first_of_key
from clickjoin.verification.duplicates import remove
from clickjoin.verification.findings import AGAIN, FAULTS
from clickjoin.verification.id_places import output_rows
from clickjoin.verification.reland import reland, seal
from clickjoin.verification.snapshot import Journals, Reading, part, planned_now, settled_now

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from clickjoin.config import Pipeline
    from clickjoin.engine import Engine
    from clickjoin.engines.port import Lake
    from clickjoin.lake.delta_reader import DeltaReader
    from clickjoin.model.split import PlannedSplit
    from clickjoin.sources.port import Source


_CLAIM, _REMOVE = ("output_without_claim",), ("doubled",)
_FORGOTTEN = ("forgotten_without_claim",)
_NO_RECORD = "its record is not in table `foreign` any more"
_ON_REQUEST = "the rows too many are taken out only on request (--remove-doubles)"
_BY_HAND = "nothing that a program should decide: see docs/verification.md"


def prescribe(pipeline: Pipeline, reading: Reading, rows: DataFrame, remove_doubles: bool) -> DataFrame:
    """Rows of `findings`, without run and at. Columns in: kind, event_id, event_time, shard."""
    rows = rows.withColumn("bucket", F.expr(bucket_sql("event_time", int(pipeline.registry.bucket))))
    rest = [kind for kind in FAULTS if kind not in (*AGAIN, *_CLAIM, *_REMOVE, *_FORGOTTEN)]
    parts = [
        _again(reading, rows.where(F.col("kind").isin(*AGAIN))),
        _claim(reading, rows.where(F.col("kind").isin(*_CLAIM))),
        _claim_forgotten(pipeline, rows.where(F.col("kind").isin(*_FORGOTTEN))),
        _plain(rows.where(F.col("kind").isin(*_REMOVE)), "remove" if remove_doubles else None, _ON_REQUEST),
        _plain(rows.where(F.col("kind").isin(*rest)), None, _BY_HAND),
    ]
    return reduce(lambda left, right: left.unionAll(right), parts)


def _again(reading: Reading, rows: DataFrame) -> DataFrame:
    """Events to dispatch again: the claim that goes first, if there is one, and the record as it landed first."""
    claims = reading.rows["registry"].select(*EVENT_KEY, "token")
    landed = reading.rows["foreign"].join(rows.select(*EVENT_KEY), list(EVENT_KEY), "left_semi")
    records = first_of_key(landed, "landed_at", "replica", "source_partition", "offset").select(
        *EVENT_KEY, "primary_id", "primary_time", "payload"
    )
    whole = rows.join(claims, list(EVENT_KEY), "left").join(records, list(EVENT_KEY), "left")
    there = F.col("payload").isNotNull()
    known = {name: F.col(name) for name in ("token", "primary_id", "primary_time", "payload")}
    return _shaped(
        whole, known | {"action": F.when(there, F.lit("again")), "detail": F.when(~there, F.lit(_NO_RECORD))}
    )


def _claim(reading: Reading, rows: DataFrame) -> DataFrame:
    """Events to give their claim back: that of their row; of a row in `joined`, if there are several."""
    found = output_rows(reading).join(rows.select(*EVENT_KEY), list(EVENT_KEY), "left_semi")
    first = first_of_key(found, F.col("outcome") != "joined", "token").select(*EVENT_KEY, "token", "outcome")
    known = {"token": F.col("token"), "outcome": F.col("outcome"), "action": F.lit("claim")}
    return _shaped(rows.join(first, list(EVENT_KEY)), known)


def _claim_forgotten(pipeline: Pipeline, rows: DataFrame) -> DataFrame:
    """Events that were forgotten, to get a claim: without one, what is read again would wait, and be given up."""
    known = {"token": f"{pipeline.pipeline}/forget", "outcome": "forgotten", "action": "claim"}
    return _shaped(rows, {name: F.lit(value) for name, value in known.items()})


def _plain(rows: DataFrame, action: str | None, otherwise: str) -> DataFrame:
    return _shaped(rows, {"action": F.lit(action), "detail": F.lit(None if action else otherwise)})


def _shaped(rows: DataFrame, known: dict[str, Column]) -> DataFrame:
    """All columns of `findings` but run and at, in order; null where nothing is known."""
    given = {name: F.col(name) for name in (*EVENT_KEY, "bucket", "shard", "kind")} | known
    return rows.select(
        *[
            given.get(column.name, F.lit(None)).cast(column.type).alias(column.name)
            for column in FINDINGS.columns
            if column.name not in ("run", "at")
        ]
    )


_JOURNAL = "journal"


class Recovery:
    """The recovery of one replica."""

    def __init__(self, lake: Lake, pipeline: Pipeline, replica: str, report_line: Reporter, clock: Clock) -> None:
        self._lake, self._pipeline, self._report_line = lake, pipeline, report_line
        self._dispatcher = Dispatcher(pipeline, lake.delta, replica, "recover", clock=clock)

    def resume(self) -> None:
        """Finish a recovery that was cut short: what was asked for once is done."""
        plan = self._dispatcher.unsettled()
        if plan:
            self._report_line(f"{plan.token} was cut short: it goes on")
            self._carry_out(plan)

    def run(self, micros: int) -> dict[str, int]:
        """Repair what the verification of that time found; returns how much by kind."""
        limit = self._pipeline.batch.max_events
        part = TableSplit("findings", self._lake.delta.version("findings"), micros, limit)
        plan = self._dispatcher.next_of_table(part)
        return self._carry_out(plan) if plan else {}

    def reland(
        self, wanted: Sequence[PlannedSplit], sources: Mapping[str, Source], micros: int, *, judged: bool
    ) -> int:
        """Land records again that are in no table; returns how many, and good ones among them are `lost` ids until
        the next look sends them on their way. `judged`: see reland.reland.
        """
        part = TableSplit(_JOURNAL, self._lake.delta.version(_JOURNAL), micros, len(wanted))
        plan = self._dispatcher.next_of_table(part)
        if plan is None or plan.table != part:
            return 0
        timeline = load_timeline(self._lake.delta)
        ctx = Context(self._pipeline, self._lake, plan, adapter_of(self._pipeline), timeline, {})
        done = reland(ctx, sources, wanted, judged=judged)
        failpoint.reach("relanded")
        seal(ctx)
        self._dispatcher.settled(plan, {})
        self._report_line(f"{plan.token}: {done} records that no table held were read again")
        return done

    def _carry_out(self, plan: BatchPlan) -> dict[str, int]:
        delta = self._lake.delta
        # Read after the plan was written: anyone who moves the boundary later sees this batch as unsettled, and waits.
        timeline, boundary = load_timeline(delta), load_boundary(delta)
        ctx = Context(self._pipeline, self._lake, plan, adapter_of(self._pipeline), timeline, boundary)
        failpoint.reach("planned")
        if plan.table and plan.table.table == _JOURNAL:  # what is missing still, the look that follows finds
            seal(ctx)
            done: dict[str, int] = {}
        else:
            done = recover(ctx, self._report_line)
        failpoint.reach("recovered")
        self._dispatcher.settled(plan, {})
        return done


def recover(ctx: Context, report_line: Reporter) -> dict[str, int]:
    """Carry out a recovery batch; returns how many events it repaired, by kind."""
    part_ = ctx.plan.table
    if part_ is None:
        return {}
    found = ctx.lake.read("findings").where(f"run = {text(f'{ctx.plan.replica}/{part_.due}')} AND action IS NOT NULL")
    rows = found.orderBy(*EVENT_KEY, "kind", "token").limit(part_.limit).localCheckpoint(eager=False)
    rows = rows.where(f"NOT COALESCE({_open(ctx)}, FALSE)")  # a claim of a batch in flight is never touched
    doable = {"again": again, "claim": give_back, "remove": remove}
    done: dict[str, int] = {}
    for action, work in doable.items():
        for kind, count in work(ctx, rows.where(F.col("action") == action)).items():
            report_line(f"{ctx.plan.token}: {count} {kind}: {_SAID[action]}")
            done[kind] = count
    ctx.lake.delta.commit_txn_only(
        "registry", ctx.plan.txn
    )  # one that still has the claims that went is known by its absence
    return done


_SAID = {
    "again": "dispatched again, and wait to be joined",
    "claim": "have their claim again",
    "remove": "rows too many moved to `removed_duplicates`",
}


def _open(ctx: Context) -> str:
    delta, name = ctx.lake.delta, ctx.plan.pipeline
    return f"action = 'again' AND {Journals(name, settled_now(delta, name), planned_now(delta, name)).open_sql()}"


def _by_kind(rows: DataFrame) -> dict[str, int]:
    counted = rows.select("kind", *EVENT_KEY).distinct().groupBy("kind").count().collect()
    return {row["kind"]: row["count"] for row in counted}


def again(ctx: Context, rows: DataFrame) -> dict[str, int]:
    """Take away the claims that have no output, then let their events, and lost ones, wait as if they were new."""
    own, _ = measured(rows)
    if not own.rows:
        return {}
    ctx.lake.delete_matched("registry", rows.where("token IS NOT NULL"), own)
    failpoint.reach("released")
    ctx.lake.append("pending", _waiting(ctx, rows, own), ctx.plan.txn)
    failpoint.reach("dispatched")
    return _by_kind(rows)


def _waiting(ctx: Context, rows: DataFrame, own: Extent) -> DataFrame:
    """New rows of `pending`, in a round of their own: it is the newest that counts."""
    unique = first_of_key(rows, "kind", "token").drop("outcome")
    history = part(ctx.lake, "pending", own).groupBy(*EVENT_KEY).agg(F.max("round").alias("last_round"))
    return unique.join(history, list(EVENT_KEY), "left").withColumns(
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
    """Put claims back that were lost, as their rows name them; never from before what the registry holds."""
    kept = claims_since(ctx.boundary, ctx.pipeline.repeats)
    rows = rows.where(f"NOT {expired_sql(kept)}").localCheckpoint(eager=False)
    own, _ = measured(rows)
    if not own.rows:
        return {}
    key = ("event_id",) if ctx.pipeline.by_id else EVENT_KEY
    claims = first_of_key(rows.select(*REGISTRY.names), "outcome", "token", key=key)
    # Under the batch's txn, so that a late copy of it inserts nothing any more.
    ctx.lake.insert_new("registry", claims.toArrow(), own, ctx.plan.txn, by_id=ctx.pipeline.by_id)
    failpoint.reach("returned")
    there = part(ctx.lake, "registry", own).select(*EVENT_KEY)
    return _by_kind(rows.join(there, list(EVENT_KEY), "left_semi"))


def settle_stranded(engine: Engine, report_line: Reporter) -> None:
    """Settle them with what they have done already: claims whose output is missing are then of no batch in flight.

    So the look that follows finds those claims, and has their events dispatched again.
    """
    for plan in unsettled(engine.lake.delta, engine.pipeline):
        if plan.sequence == "retry" and _is_stranded(engine.lake.delta, plan):
            report_line(f"{plan.token} was planned on a version that is lost: it is settled with what it has done")
            engine.finish(plan)


def _is_stranded(delta: DeltaReader, plan: BatchPlan) -> bool:
    named = plan.table.versions if plan.table else {}
    return any(delta.version(table) < version for table, version in named.items())
