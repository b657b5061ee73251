"""What the logs and the journal say of one another, gathered without Spark."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from clickjoin.dispatcher.committed import CommittedTxns
from clickjoin.lake.log_entries import TableLog, read_log
from clickjoin.schemas import ALL

if TYPE_CHECKING:
    from clickjoin.lake.delta_reader import DeltaReader

Key = tuple[str, str]  # replica, sequence
JOURNAL = "journal"
NUMBERED = ("join", "retry", "redrive", "recover")
_PARTS = ("", "/primary", "/foreign")  # of table `quarantine`, which has a transaction for each stream
ACCOUNTED = "accounted"


@dataclass(frozen=True)
class Sequence:
    """How far the journal says that a sequence has come, and what its batches had seen by then."""

    planned: int = 0
    held: CommittedTxns = field(default_factory=CommittedTxns)


@dataclass(frozen=True)
class Facts:
    """The log of every table that is there, and every sequence that any of them knows.

    `blind`: why the journal's rows could not be read; empty where they could.
    """

    pipeline: str
    root: str
    logs: Mapping[str, TableLog]
    sequences: Mapping[Key, Sequence]
    blind: str = ""

    def txns(self, table: str, key: Key) -> dict[str, int]:
        """What a table holds of a sequence: under the table's name, and for `quarantine` one for each stream."""
        app = f"{self.pipeline}/{key[0]}/{key[1]}"
        found = {f"{table}{part}": self.logs[table].txns.get(f"{app}{part}", 0) for part in _PARTS}
        return {name: number for name, number in found.items() if number > 0}

    def version(self, table: str) -> int:
        """Newest version of a table; versions that were lost and accounted for count."""
        log = self.logs[table]
        return log.version + max(log.txns.get(ACCOUNTED, 0), 0)


def gather(delta: DeltaReader, pipeline: str) -> Facts:
    """Take the facts. Joins may run, so what must be there is read after what says so.

    The journal's rows first, the tables that they speak of next, the registry after the outputs; and last once more
    the journal, for what has been planned.
    """
    before = read_log(delta.path(JOURNAL))
    held, blind = _held(delta, pipeline, before) if not before.torn else ({}, "")
    names = [table.name for table in reversed(ALL) if table.name != JOURNAL]  # the registry last: claims come first
    logs = {name: log for name in names if (log := read_log(delta.path(name))).version >= 0}
    after = read_log(delta.path(JOURNAL))
    apps = {app for log in (after, *logs.values()) for app in log.txns}
    sequences = {
        key: Sequence(max(after.txns.get(f"{pipeline}/{'/'.join(key)}/planned", 0), 0), held.get(key, CommittedTxns()))
        for key in keys(apps, pipeline)
    }
    return Facts(pipeline, delta.path("").rstrip("/"), {JOURNAL: after, **logs}, sequences, blind)


def keys(apps: Iterable[str], pipeline: str) -> list[Key]:
    """The sequences of a pipeline that some transactions belong to."""
    wanted = re.compile(rf"{re.escape(pipeline)}/([^/]+)/({'|'.join(NUMBERED)})(/.*)?")
    found = (wanted.fullmatch(app) for app in apps)
    return sorted({(match[1], match[2]) for match in found if match})


def _held(delta: DeltaReader, pipeline: str, log: TableLog) -> tuple[dict[Key, CommittedTxns], str]:
    """What the newest settled row of each sequence says; and why none could be read."""
    last = {
        key: number
        for key in keys(log.txns, pipeline)
        if (number := log.txns.get(f"{pipeline}/{'/'.join(key)}/settled", 0)) > 0
    }
    if not last:
        return {}, ""
    filters: Any = [
        [("replica", "=", replica), ("sequence", "=", sequence), ("batch", "=", number), ("state", "=", "settled")]
        for (replica, sequence), number in last.items()
    ]
    try:
        rows = delta.read(JOURNAL, filters, ["replica", "sequence", "plan"]).to_pylist()
    except (OSError, pa.ArrowException) as error:  # a file that is gone, or is no Parquet (any more)
        return {}, str(error)
    found: dict[Key, CommittedTxns] = {}
    for row in rows:
        key = (row["replica"], row["sequence"])
        held = CommittedTxns.from_plain(json.loads(row["plan"]).get("held", {}), f"{pipeline}/{'/'.join(key)}")
        found[key] = held if held.txns or held.tables else found.get(key, held)
    return found, ""
