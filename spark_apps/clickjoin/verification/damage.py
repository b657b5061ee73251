"""What is wrong with the tables themselves, before any id is looked at: lost commits, older copies, files gone.

All that was lost with them shows in ids and records, and is repaired there; what is written down here is what it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from clickjoin.agreement.check import refusal, remember
from clickjoin.agreement.facts import gather
from clickjoin.agreement.mark_repaired import account, lacking
from clickjoin.agreement.rules import OLD_TABLE, Disagreement, disagreements
from clickjoin.lake.log_repair import fill
from clickjoin.lake.lost_files import DAMAGED, MISSING, BadFile, bad_files, take_out
from clickjoin.model.errors import LakeError
from clickjoin.model.ids import EPOCH
from clickjoin.model.reporter import Reporter
from clickjoin.model.txn import Txn
from clickjoin.schemas import ALL
from clickjoin.verification.findings import SAMPLES, Count
from clickjoin.verification.overwritten import Overwritten, overwritten

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.engines.port import Tables

KINDS = ("torn_log", OLD_TABLE, "overwritten_commit", MISSING, DAMAGED)
_BOOKS = {  # nothing that is left says what they held
    "journal": "stop the joins, run `clickjoin journal rebuild --replace`, then `clickjoin verify --repair`",
    "registry_boundary": "restore it",
    "shard_timeline": "restore it",
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


def examine(delta: Tables, pipeline: Pipeline, since: datetime, *, repair: bool, report_line: Reporter) -> Damage:
    """Look at logs and files; where `repair`, make logs whole.

    `since`: how far back single commits are looked for. Errors: LakeError where the journal itself cannot be trusted,
    so that no id can be judged.
    """
    torn = _fill(delta, report_line) if repair else ()
    facts = gather(delta, pipeline.pipeline)
    found = disagreements(facts)
    if others := [one for one in found if one.kind != OLD_TABLE]:
        raise refusal(others)
    remember(delta, facts)
    files = [file for table in ALL if table.name in facts.logs for file in bad_files(delta, table.name)]
    _require_books(delta, files)
    lost = overwritten(delta, facts, EPOCH if found else since, found)
    return Damage(torn, tuple(found), tuple(lost), tuple(files))


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

    Not before claims are given back: until then whoever joins stops at a file that is gone, and doubles nothing.
    """
    _take_out(delta, damage.files, report_line)
    account(delta, pipeline.pipeline, [name for name in lacking(damage.older) if name not in _BOOKS])
    for one in damage.overwritten:
        delta.commit_txn_only(one.table, Txn(one.accounted, 1))
