"""What is wrong with the tables themselves, before any id is looked at: lost commits, older copies, files gone.

All that was lost with them shows in ids and records, and is repaired there; what is written down here is what it was.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from clickjoin.agreement.check import refusal, remember
from clickjoin.agreement.facts import ACCOUNTED, JOURNAL, Facts, Key, gather
from clickjoin.agreement.mark_repaired import account, lacking
from clickjoin.agreement.rules import BOOKS, OLD_TABLE, Disagreement, disagreements
from clickjoin.dispatcher.committed import CommittedTxns
from clickjoin.lake.history import transactions
from clickjoin.lake.log_repair import fill
from clickjoin.lake.lost_files import DAMAGED, MISSING, BadFile, bad_files, take_out
from clickjoin.model.errors import LakeError
from clickjoin.model.ids import EPOCH
from clickjoin.model.reporter import Reporter
from clickjoin.model.txn import Txn
from clickjoin.schemas import ALL
from clickjoin.verification.findings import SAMPLES, Count

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.engines.tables_port import Tables
    from clickjoin.lake.delta_reader import DeltaReader


KINDS = ("torn_log", OLD_TABLE, "overwritten_commit", MISSING, DAMAGED)
# Nothing that is left says what they held: what to do.
_BOOKS = dict.fromkeys(BOOKS, "restore it") | {
    "journal": "stop the joins, run `clickjoin journal rebuild --replace`, then `clickjoin verify --repair`",
    "forgotten": "restore it from a backup, and forget again what was forgotten since",
}


@dataclass(frozen=True)
class Damage:
    """What was found; `torn` has been put in order already."""

    torn: tuple[tuple[str, str], ...] = ()
    older: tuple[Disagreement, ...] = ()
    overwritten: tuple[Overwritten, ...] = ()
    files: tuple[BadFile, ...] = ()

    def __bool__(self) -> bool:
        """Whether anything was found: then all times are looked at."""
        return bool(self.torn or self.older or self.overwritten or self.files)

    def tables(self) -> set[str]:
        """Tables that have lost something."""
        return {one.table for found in (self.older, self.overwritten, self.files) for one in found}

    def samples(self) -> dict[str, list[dict[str, Any]]]:
        """What there is of each kind, as plain data."""
        found: dict[str, list[dict[str, Any]]] = {kind: [] for kind in KINDS}
        found["torn_log"] = [{"table": table, "file": file} for table, file in self.torn]
        tables = {one.table: one for one in reversed(self.older)}
        found[OLD_TABLE] = [{"table": table, "detail": one.text} for table, one in sorted(tables.items())]
        found["overwritten_commit"] = [one.sample() for one in self.overwritten]
        for kind in (MISSING, DAMAGED):
            own = [file for file in self.files if file.kind == kind]
            found[kind] = [{"table": f.table, "path": f.path, "detail": f.why, "rows": f.rows} for f in own]
        return found

    def counts(self) -> tuple[Count, ...]:
        """As counts of a report."""
        return tuple(
            Count(kind, len(found), len(ALL), samples=tuple(found[:SAMPLES])) for kind, found in self.samples().items()
        )

    def repaired(self, accounted: bool) -> dict[str, int]:
        """How much of each kind is repaired; `accounted`: what was lost with commits is, too."""
        found = {kind: len(items) for kind, items in self.samples().items()}
        if accounted:
            left = sum(one["table"] in _BOOKS for one in self.samples()[OLD_TABLE])
            return found | {OLD_TABLE: found[OLD_TABLE] - left}
        return {"torn_log": found["torn_log"]}


@dataclass(frozen=True)
class Logs:
    """The logs of all tables, none of them torn (any more): what was, what they say, and what does not fit together."""

    torn: tuple[tuple[str, str], ...]
    facts: Facts
    older: tuple[Disagreement, ...]


def whole_logs(delta: Tables, pipeline: Pipeline, *, repair: bool, report_line: Reporter) -> Logs:
    """Look at the logs, before any table is opened: no engine opens one that is torn. Where `repair`, make them whole.

    Errors: LakeError where they are torn, or the journal itself cannot be trusted, so that no id can be judged.
    """
    torn = _fill(delta, report_line) if repair else ()
    facts = gather(delta, pipeline.pipeline)
    found = disagreements(facts)
    if others := [one for one in found if one.kind != OLD_TABLE]:
        raise refusal(others)
    remember(delta, facts)
    return Logs(torn, facts, tuple(found))


def examine(delta: Tables, logs: Logs, since: datetime) -> Damage:
    """Look at files, and at single commits as far back as `since`. Errors: LakeError for a table of the books."""
    files = [file for table in ALL if table.name in logs.facts.logs for file in bad_files(delta, table.name)]
    _require_books(delta, files)
    lost = overwritten(delta, logs.facts, EPOCH if logs.older else since, logs.older)
    return Damage(logs.torn, logs.older, tuple(lost), tuple(files))


def _fill(delta: Tables, report_line: Reporter) -> tuple[tuple[str, str], ...]:
    done = [(table.name, torn) for table in ALL for torn in fill(delta, table.name)]
    for name, torn in done:
        report_line(f"{delta.path(name)}: {torn.file} {torn.why}: replaced by an entry without a change")
    return tuple((name, torn.file) for name, torn in done)


def _require_books(delta: Tables, files: Sequence[BadFile]) -> None:
    for file in files:
        if file.table in _BOOKS:
            raise LakeError(
                f"{delta.path(file.table)}/{file.path}: {file.why}, and nothing else holds its {file.rows} rows",
                remedy=f"Restore the file or the table; else {_BOOKS[file.table]}",
            )


def _take_out(delta: Tables, files: Sequence[BadFile], report_line: Reporter) -> None:
    for name in dict.fromkeys(file.table for file in files):
        own = [file for file in files if file.table == name]
        take_out(delta, name, own)
        for file in own:
            report_line(f"{delta.path(name)}/{file.path}: {file.why}: taken out of the table, with {file.rows} rows")


def settle(delta: Tables, pipeline: Pipeline, damage: Damage, report_line: Reporter) -> None:
    """Take files out, and write down that what was lost with commits is repaired, so that it is found no more.

    Not before claims are given back: until then anyone who joins stops at a file that is gone, and doubles nothing.
    """
    _take_out(delta, damage.files, report_line)
    account(delta, pipeline.pipeline, [name for name in lacking(damage.older) if name not in _BOOKS])
    for one in damage.overwritten:
        delta.commit_txn_only(one.table, Txn(one.accounted, 1))


@dataclass(frozen=True)
class Overwritten:
    """A batch's commit to a table: its token, and the versions of its neighbours, between which it was."""

    table: str
    app_id: str
    number: int
    after: int
    before: int

    @property
    def accounted(self) -> str:
        """The application that says, in the table, that what hung on the commit is repaired."""
        return f"{ACCOUNTED}/{self.app_id}/{self.number}"

    def sample(self) -> dict[str, Any]:
        """As plain data."""
        detail = f"was between versions {self.after} and {self.before}"
        return {"table": self.table, "token": f"{self.app_id}/{self.number}", "detail": detail}


def overwritten(
    delta: DeltaReader, facts: Facts, since: datetime, older: Sequence[Disagreement] = ()
) -> list[Overwritten]:
    """Commits of batches settled since a moment that are not in the log, which holds some before and after them.

    `older`: batches that a table must hold and does not. All between them and what it holds is found now, since once
    they are accounted for it would look overwritten.
    """
    committed = _committed(delta, facts, since)
    ends = {(one.table, one.app_id, one.number): facts.version(one.table) + 1 for one in older if one.number}
    found: list[Overwritten] = []
    for table in sorted({name.partition("/")[0] for held in committed.values() for name in held}):
        if table in facts.logs:
            log = transactions(delta.path(table), since)
            log |= {(app, number): version for (name, app, number), version in ends.items() if name == table}
            for (replica, sequence), held in committed.items():
                app = f"{facts.pipeline}/{replica}/{sequence}"
                for name, numbers in held.items():
                    if name.partition("/")[0] == table:
                        found += _missing(facts, table, f"{app}{name[len(table) :]}", numbers, log)
    return found


def _missing(
    facts: Facts, table: str, app: str, numbers: set[int], log: Mapping[tuple[str, int], int]
) -> Iterator[Overwritten]:
    """What lies between commits that are there: before the first the log may have been cleaned."""
    there = {number: version for (name, number), version in log.items() if name == app}
    known = facts.logs[table].txns
    for number in sorted(numbers - set(there)):
        before = [version for other, version in there.items() if other > number]
        after = [version for other, version in there.items() if other < number]
        lost = Overwritten(table, app, number, max(after, default=0), min(before, default=0))
        if before and after and lost.accounted not in known:
            yield lost


def _committed(delta: DeltaReader, facts: Facts, since: datetime) -> dict[Key, dict[str, set[int]]]:
    """By sequence and table: the batches that settled rows say have committed to it."""
    rows = delta.read(JOURNAL, [("state", "=", "settled")], ["replica", "sequence", "batch", "at", "plan"])
    found: dict[Key, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    for row in rows.to_pylist():
        if row["at"] >= since:
            key = (row["replica"], row["sequence"])
            held = CommittedTxns.from_plain(
                json.loads(row["plan"]).get("held", {}), f"{facts.pipeline}/{'/'.join(key)}"
            )
            for name, number in held.txns.items():
                if number == row["batch"]:
                    found[key][name].add(number)
    return found
