"""Protections that can be taken away, to see that the simulator misses them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.simulator import beat_breaks


def apply(name: str) -> None:
    """Take a protection away."""
    BREAKS[name]()


def _token() -> None:
    """A batch publishes every claimed id that it looked up, whoever owns the claim."""
    from clickjoin.kernel import resolving

    def anyones(job: Any, claims: Any, rows: Any) -> Any:
        found = claims.rows(
            rows["event_id"], resolving.TimeRanges(resolving.distinct(resolving.micros(rows))), resolving._CLAIM
        )
        return resolving.values_of(rows, found.combine_chunks(), "outcome")

    resolving._own_claims = anyones


def _fix() -> None:
    """A batch that claims nothing fixes nothing."""
    from clickjoin.engines.arrow import ArrowTables

    commit = ArrowTables.commit_txn_only
    ArrowTables.commit_txn_only = lambda self, name, txn: (  # type: ignore[method-assign]
        name == "registry" or commit(self, name, txn)
    )


def _rerun() -> None:
    """Commits are forced through, whatever came first."""
    from tests.simulator import rules

    rules.check_spark = lambda winner, read, mine: None


def _journal() -> None:
    """Plans are written down once the work is done."""
    from clickjoin.dispatcher.journal import Journal

    plan, settle = Journal.plan, Journal.settle
    held: dict[tuple[str, int], Any] = {}

    def late(self: Journal, made: Any, at: Any) -> bool:
        held[self.app, made.number] = (made, at)
        return True

    def both(self: Journal, number: int, *rest: Any) -> bool:
        if (self.app, number) in held:
            plan(self, *held.pop((self.app, number)))
        return settle(self, number, *rest)

    Journal.plan, Journal.settle = late, both  # type: ignore[method-assign]


def _boundary_order() -> None:
    """Partitions are dropped without waiting for batches that may have read the older boundary."""
    from clickjoin.dispatcher import unsettled

    unsettled.handle = lambda *_, **__: unsettled.Handled()


def _timeline_fence() -> None:
    """An entry of the timeline is in force as soon as it is written."""
    from clickjoin.registry import reshard, shards

    shards.in_force = reshard.in_force = lambda delta, since: True  # type: ignore[attr-defined]
    reshard._put_in_force = lambda delta, pipeline, since, shards: None


def _next_version() -> None:
    """What was looked up is claimed as whatever version comes next."""
    from clickjoin.lake.table_version import TableVersion

    commit_next = TableVersion.commit_next

    def commit(self: TableVersion, files: Any, txn: Any, *removed: Any) -> bool:
        while not commit_next(self, files, txn, *removed):
            self._table.update_incremental()
            if txn and self.holds(txn):
                return False
        return True

    TableVersion.commit_next = commit  # type: ignore[method-assign]


def _look_again() -> None:
    """What workers have written is claimed without a look at the claims that came since they looked."""
    from clickjoin.engines.arrow import claims as claim

    claim._since = lambda *_: {}


def _exclusive() -> None:
    """Spark's log store puts a version where another may have put one meanwhile, as rename(2) does."""
    from tests.simulator.model import Lake

    Lake.exclusive = False


def _own_commit() -> None:
    """Who has lost the answer to its commit takes it for another's."""
    from clickjoin.lake import committer
    from tests.simulator.model import Lake

    committer._landed = lambda *_: False
    Lake.recognises = False


def _flush() -> None:
    """Nothing is flushed to disk."""
    from clickjoin.lake import committer
    from tests.simulator.model import Lake

    committer._flush = lambda *_: None
    Lake.flushes = False


def _lake_clock() -> None:
    """Ages of files are measured by the clock of the process that collects."""
    from tests.simulator import ports

    ports.own_clock()


def _files_there() -> None:
    """Files are committed without a look whether they are there; and they go by the collector's clock."""
    from clickjoin.lake import committer

    _lake_clock()
    committer._require_there = lambda *_: None


def _agreement() -> None:
    """Whatever tables are there are taken as they are."""
    from clickjoin import lake_setup
    from clickjoin.verification import damage

    lake_setup.require_agreement = lambda *_: None
    damage.disagreements = lambda facts: []


def _named() -> None:
    """A plan may name a version of a table that is not there."""
    from clickjoin.agreement import rules

    rules._named = lambda *_: iter(())


def _trust_filter() -> None:
    """An id that a filter of claims names is taken for claimed."""
    from tests.simulator import filters

    filters.trust()


def _repeats() -> None:
    """Where an id has no time, its claim goes with the boundary, though an event at that may repeat an older one."""
    from clickjoin.config import Pipeline

    Pipeline.repeats = property(lambda self: 1e-6 if self.by_id else 0.0)  # type: ignore[assignment,method-assign]


def _age() -> None:
    """Where an id has no time, its event is as old as its reading."""
    from tests.simulator import logs

    rows = logs.LogSource._rows

    def read_now(self: Any, splits: Any, spec: Any) -> Any:
        now = logs.moment(spec.latest_micros / 1e6 - 2 * logs.SKEW - logs.START)
        return [row | ({"event_time": now} if row["event_time"] else {}) for row in rows(self, splits, spec)]

    logs.LogSource._rows = read_now  # type: ignore[method-assign]


def _apart() -> None:
    """The copies of an id in one batch are distinguished by their times."""
    from clickjoin.kernel import join_task

    join_task.first_of_id = join_task.first_of


def _fill_claims() -> None:
    """What a fill publishes is not claimed."""
    from clickjoin.dates import late_events

    late_events._claimed = lambda ctx, made, own: made


def _same_past() -> None:
    """A table that was put back to what it was is read on from the version that had been reached."""
    from clickjoin.sources.delta.planning import TableDraft

    TableDraft._same = lambda self, known: known  # type: ignore[method-assign]


def _same_log() -> None:
    """A table's log is taken to be the one that was read, whatever it holds by now."""
    from clickjoin.lake.continuity import Watched

    Watched.follow = lambda self, place, version: None  # type: ignore[method-assign]


def _in_order() -> None:
    """Logs are taken to be in order: what is older than the newest event that has landed has been read."""
    from clickjoin import engine
    from clickjoin.dispatcher.unread import primary_passed
    from clickjoin.model.ids import MICROS

    def newest(pipeline: Any, delta: Any, replica: str) -> int | None:
        passed = primary_passed(pipeline, delta, replica)
        return passed and passed + int(pipeline.close.max_out_of_orderness * MICROS)

    engine.primary_passed = newest


def _at_once() -> None:
    """Events of a join by a key and time are decided as soon as they are looked at."""
    from clickjoin.kernel.waiting import Tries

    absent = Tries.absent
    Tries.absent = lambda self, rows: ~absent(self, rows) | True if self.decides else absent(self, rows)  # type: ignore[method-assign]


def _publish_first() -> None:
    """Signals are published before the state that they came of is committed."""
    from clickjoin.processing.processing import Processing

    commit = Processing._commit

    def both(self: Any, plan: Any, loaded: Any, last: Any, result: Any) -> None:
        if last.outbox is not None:
            self.tables.append_table("signals", last.outbox, plan.txn)
        commit(self, plan, loaded, last, result)

    Processing._commit = both  # type: ignore[method-assign]


def _forms() -> None:
    """Forms of a time that are added are not written down, so two files can go on with others."""
    from clickjoin.registry import shards

    shards._keep_forms = lambda *_: None


def _zones() -> None:
    """Which rules of a time's zone a lake was read by is not looked at."""
    from clickjoin import lake_setup

    lake_setup.keep_zones = lambda *_: None


def _ahead() -> None:
    """What was written ahead counts as the batch's own, whatever that is to read by now."""
    from clickjoin.engines.arrow.land_ahead import LandedAhead

    LandedAhead.of = lambda self, ctx: self.files  # type: ignore[method-assign]


BREAKS: Mapping[str, Callable[[], None]] = {
    "token": _token,
    "fix": _fix,
    "rerun": _rerun,
    "journal": _journal,
    "boundary-order": _boundary_order,
    "timeline-fence": _timeline_fence,
    "next-version": _next_version,
    "look-again": _look_again,
    "exclusive": _exclusive,
    "own-commit": _own_commit,
    "flush": _flush,
    "agreement": _agreement,
    "named": _named,
    "lake-clock": _lake_clock,
    "files-there": _files_there,
    "trust-filter": _trust_filter,
    "repeats": _repeats,
    "age": _age,
    "apart": _apart,
    "fill-claims": _fill_claims,
    "same-past": _same_past,
    "same-log": _same_log,
    "in-order": _in_order,
    "at-once": _at_once,
    "publish-first": _publish_first,
    "blind": beat_breaks.blind,
    "own-beat": beat_breaks.own_beat,
    "ahead": _ahead,
    "forms": _forms,
    "zones": _zones,
}
