"""Guards of the promise, and how each is taken out. Only here do names below the public surface stand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial, partialmethod
from typing import Any

import pytest

Patch = pytest.MonkeyPatch


def _without_transaction(patch: Patch, names: tuple[str, ...]) -> None:
    """Whichever engine commits."""
    from clickjoin.engines.arrow.tables import ArrowTables
    from clickjoin.engines.spark.commits import Commits

    once, append = ArrowTables._once, Commits.append

    def by_arrow(self: Any, name: str, write: Any, txn: Any, files: Any = None) -> bool:
        return once(self, name, write, None if name in names else txn, files)

    def by_spark(self: Any, name: str, rows: Any, txn: Any = None) -> bool:
        return append(self, name, rows, None if name in names else txn)

    patch.setattr(ArrowTables, "_once", by_arrow)
    patch.setattr(Commits, "append", by_spark)


def _transaction_of_landing(patch: Patch) -> None:
    """Rows are appended under no transaction: a batch that is run again lands them again."""
    _without_transaction(patch, ("primary", "foreign"))


def _transaction_of_output(patch: Patch) -> None:
    """Output is published under no transaction."""
    _without_transaction(patch, ("joined", "deduplicated"))


def _claimed_once(patch: Patch) -> None:
    """Claims are committed as whatever version comes next; a MERGE inserts what is there already."""
    from clickjoin.engines.spark import outputs
    from clickjoin.lake.table_version import TableVersion

    commit_next = TableVersion.commit_next

    def commit(self: Any, files: Any, txn: Any, removed: Any = ()) -> bool:
        while not commit_next(self, files, txn, removed):
            self._table.update_incremental()
            if txn and self.holds(txn):
                return False
        return True

    patch.setattr(TableVersion, "commit_next", commit)
    patch.setattr(outputs, "_same", lambda *_: "FALSE")


def _claims_fixed(patch: Patch) -> None:
    """A batch that has nothing to claim leaves no transaction in the registry."""
    from clickjoin.engines.arrow.tables import ArrowTables
    from clickjoin.engines.spark.tables import SparkTables

    def commit(commit: Any, self: Any, name: str, txn: Any) -> bool:
        return name == "registry" or bool(commit(self, name, txn))

    for kind in (ArrowTables, SparkTables):
        patch.setattr(kind, "commit_txn_only", partialmethod(partial(commit, kind.commit_txn_only)))


def _pending_first(patch: Patch) -> None:
    """What is expired is committed before what waits."""
    from clickjoin.engines.arrow import side_outputs
    from clickjoin.engines.spark import outputs

    def by_arrow(write: Any, lake: Any, ctx: Any, outcome: Any, boundary: Any) -> Any:
        side_outputs._append(lake, ctx, outcome, "expired")
        return write(lake, ctx, outcome, boundary)

    def by_spark(write: Any, lake: Any, ctx: Any, outcome: Any, boundary: Any) -> Any:
        outputs._append(lake, ctx, "expired", outcome.rows.of("expired"), outcome.count("expired"))
        return write(lake, ctx, outcome, boundary)

    for module, by in ((side_outputs, by_arrow), (outputs, by_spark)):
        patch.setattr(module, "write_side_outputs", partial(by, module.write_side_outputs))


def _screening(patch: Patch) -> None:
    """Events are taken for new, whatever the registry holds of them."""
    from pyspark.sql import functions as F

    from clickjoin.engines.arrow import joining
    from clickjoin.engines.spark import resolving

    screened = resolving.screened

    def none_of(work: Callable[..., Any], lake: Any, ctx: Any, events: Any, job: Any, claims: Any) -> Any:
        return work(lake, ctx, events, job, claims.slice(0, 0))

    def as_new(*args: Any) -> Any:
        return screened(*args).withColumn("standing", F.lit("new"))

    for name in ("_new_records", "_retried"):
        patch.setattr(joining, name, partial(none_of, getattr(joining, name)))
    patch.setattr(resolving, "screened", as_new)


def _hold_of_a_date(patch: Patch) -> None:
    """Nobody looks whether another run holds a date, neither before a hold nor as it is committed."""
    from clickjoin.dates import ledger
    from clickjoin.engines.spark import SparkTables

    def append(self: Any, name: str, version: int, row: Any, unless: str, txn: Any = None) -> bool:
        return bool(self.append(name, [row], txn))

    patch.setattr(ledger, "_holds", lambda *_: {})
    patch.setattr(SparkTables, "append_next", append)


def _mark_of_a_restore(patch: Patch) -> None:
    """A process goes on with what it has opened, whatever took the lake's place."""
    from clickjoin.lake.delta_reader import DeltaReader

    patch.setattr(DeltaReader, "require_same", lambda _: None)
    _content_of_a_version(patch)  # which sees it, too


def _restore_by_others(patch: Patch) -> None:
    """What another program's RESTORE took out is not looked for in a log."""
    from clickjoin.lake.restores import Restores

    patch.setattr(Restores, "newest", 0)


def _content_of_a_version(patch: Patch) -> None:
    """A version that was read is taken for what it was, whatever lies there by now."""
    from clickjoin.lake.continuity import Watched

    patch.setattr(Watched, "_require_same", lambda *_: None)


def _boundary(patch: Patch) -> None:
    """The registry is taken to answer for all time."""
    from clickjoin import engine

    patch.setattr(engine, "load_bounds", lambda _: ({}, None))


def _watermark(patch: Patch) -> None:
    """By a key and time an event is decided as soon as it has landed, whatever may still come."""
    from clickjoin.engines.context import Context

    patch.setattr(Context, "passed", 4_000_000_000_000_000)


BREAKS: Mapping[str, Callable[[Patch], None]] = {
    "transaction of landing": _transaction_of_landing,
    "transaction of output": _transaction_of_output,
    "claimed once": _claimed_once,
    "boundary": _boundary,
    "claims fixed": _claims_fixed,
    "pending first": _pending_first,
    "screening": _screening,
    "hold of a date": _hold_of_a_date,
    "mark of a restore": _mark_of_a_restore,
    "RESTORE by others": _restore_by_others,
    "content of a version": _content_of_a_version,
    "watermark": _watermark,
}
