"""What the logs and the journal say of one another, gathered without Spark."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from clickjoin.agreement.noted import noted
from clickjoin.dispatcher.committed import CommittedTxns
from clickjoin.lake.delta_reader import DeltaReader
from clickjoin.lake.log_entries import TableLog
from clickjoin.lake.log_looks import logs
from clickjoin.model.batch_plan import BatchPlan
from clickjoin.model.store_faults import not_read
from clickjoin.model.txn import Shown
from clickjoin.schemas import ALL, REGISTRY

Key = tuple[str, str]  # replica, sequence
JOURNAL = "journal"
NUMBERED = ("join", "retry", "redrive", "recover")
_PARTS = ("", "/primary", "/foreign")  # of table `quarantine`, which has a transaction for each stream
ACCOUNTED = "accounted"


@dataclass(frozen=True)
class Sequence:
    """How far the journal says that a sequence has come, and what its batches had seen by then.

    `named`: the version of each table that the plan of its unsettled batch names.
    """

    planned: int = 0
    held: CommittedTxns = field(default_factory=CommittedTxns)
    named: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Facts:
    """The log of every table that is there, and every sequence that any of them knows.

    `blind`: why the journal's rows could not be read; empty where they could. `noted`: how far tables had come by the
    journal's notes.
    """

    pipeline: str
    root: str
    logs: Mapping[str, TableLog]
    sequences: Mapping[Key, Sequence]
    blind: str = ""
    noted: Shown = field(default_factory=dict)

    def txns(self, table: str, key: Key) -> dict[str, int]:
        """What a table holds of a sequence: under the table's name, and for `quarantine` one for each stream."""
        app = f"{self.pipeline}/{key[0]}/{key[1]}"
        found = {f"{table}{part}": self.logs[table].txns.get(f"{app}{part}", 0) for part in _PARTS}
        return {name: number for name, number in found.items() if number > 0}

    def version(self, table: str) -> int:
        """Newest version of a table; versions that were lost and accounted for count."""
        log = self.logs[table]
        return log.version + max(log.txns.get(ACCOUNTED, 0), 0)


def gather(delta: DeltaReader, pipeline: str, fresh: DeltaReader | None = None) -> Facts:
    """Take the facts. Joins may run, so what must be there is read after what says so.

    The journal's rows first, the tables that they speak of next, the registry after the outputs; and last once more
    the journal, for what has been planned. `fresh`: a reader whose copies of logs were made just now, if there is one:
    an older one does not tell of a log that has become shorter.
    """
    fresh = fresh or DeltaReader(delta.root)
    before = logs(fresh, [JOURNAL]).get(JOURNAL, TableLog())
    said, blind = _said(delta, pipeline, before) if not before.torn else ({}, "")
    # The registry last: claims come first.
    others = [table.name for table in reversed(ALL) if table.name not in (JOURNAL, REGISTRY.name)]
    found = {**logs(fresh, others), **logs(fresh, [REGISTRY.name])}
    after = logs(fresh, [JOURNAL]).get(JOURNAL, TableLog())
    apps = {app for log in (after, *found.values()) for app in log.txns}
    sequences = {
        key: replace(said.get(key, Sequence()), planned=max(after.txns.get(_app(pipeline, key, "planned"), 0), 0))
        for key in keys(apps, pipeline)
    }
    return Facts(pipeline, delta.path("").rstrip("/"), {JOURNAL: after, **found}, sequences, blind, noted(before.txns))


def keys(apps: Iterable[str], pipeline: str) -> list[Key]:
    """The sequences of a pipeline that some transactions belong to."""
    wanted = re.compile(rf"{re.escape(pipeline)}/([^/]+)/({'|'.join(NUMBERED)})(/.*)?")
    found = (wanted.fullmatch(app) for app in apps)
    return sorted({(match[1], match[2]) for match in found if match})


def _app(pipeline: str, key: Key, state: str) -> str:
    return f"{pipeline}/{'/'.join(key)}/{state}"


def _said(delta: DeltaReader, pipeline: str, log: TableLog) -> tuple[dict[Key, Sequence], str]:
    """What the newest row of each sequence says, settled and planned; and why none could be read."""
    wanted: list[tuple[Key, str, int]] = []
    for key in keys(log.txns, pipeline):
        planned, settled = (log.txns.get(_app(pipeline, key, state), 0) for state in ("planned", "settled"))
        wanted += [(key, "settled", settled)] if settled > 0 else []
        wanted += [(key, "planned", planned)] if planned > settled else []
    if not wanted:
        return {}, ""
    filters: Any = [
        [("replica", "=", replica), ("sequence", "=", sequence), ("batch", "=", number), ("state", "=", state)]
        for (replica, sequence), state, number in wanted
    ]
    try:
        rows = delta.read("journal", filters, ["replica", "sequence", "state", "plan"]).to_pylist()
    except (OSError, pa.ArrowException) as error:  # a file that is gone, or is no Parquet (any more)
        if unread := not_read(delta.path("journal"), error):
            raise unread from error
        return {}, str(error)
    found: dict[Key, Sequence] = {}
    for row in rows:
        key = (row["replica"], row["sequence"])
        found[key] = _plus(found.get(key, Sequence()), row["state"], row["plan"], f"{pipeline}/{'/'.join(key)}")
    return found, ""


def _plus(known: Sequence, state: str, plan: str, app_id: str) -> Sequence:
    if state == "planned":
        table = BatchPlan.from_json(plan).table
        return replace(known, named=table.versions if table else {})
    held = CommittedTxns.from_plain(json.loads(plan).get("held", {}), app_id)
    return replace(known, held=held) if held.txns or held.tables else known
