"""What the journal and the tables may say of one another: pure rules over facts.

A batch is planned before any commit of its own, and settled after all of them. So no table can hold a batch that the
journal has not planned; every table holds what settled batches have seen in it, and the version that a planned batch
names; and an output holds no batch that the registry does not hold, since claims come first. What a batch under way has
committed lies between, and is no matter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clickjoin.agreement.facts import JOURNAL, Facts, Key
from clickjoin.lake.log_entries import POINTER, TableLog
from clickjoin.lake.restores import RESTORE, restored_text
from clickjoin.model.txn import Shown

OLD_JOURNAL, OLD_TABLE, TORN, BLIND = "old_journal", "old_table", "torn_log", "blind"
# What cannot be there before the same batch is in the registry, by sequence.
_AFTER_CLAIMS = {
    "join": ("joined", "filtered", "unjoinable"),
    "retry": ("joined", "filtered", "unjoinable"),
    "redrive": ("pending",),
}
BOOKS = ("registry_boundary", "shard_timeline", "forgotten")  # nothing else holds what they say
_REBUILT = ("registry", "registry_boundary", "shard_timeline")


@dataclass(frozen=True)
class Disagreement:
    """Something that no batch under way explains: its kind, the table that is wrong, and both sides in a sentence.

    `app_id`, `number`: of OLD_TABLE the batch that it must hold; `version`: of OLD_TABLE how far it had come.
    """

    kind: str
    table: str
    text: str
    app_id: str = ""
    number: int = 0
    version: int = 0

    @property
    def remedy(self) -> str:
        """What brings the table and the others together again."""
        if self.app_id == RESTORE:
            return self._undo
        if self.kind in (OLD_JOURNAL, BLIND):
            return (
                "Restore the newest copy of `journal`; or stop the joins, run `clickjoin journal rebuild --replace`, "
                "then `clickjoin verify --repair`"
            )
        if self.kind == TORN:
            return "Stop the joins and run `clickjoin verify --repair`: it says what was lost with it, and repairs that"
        if self.table in _REBUILT:
            return (
                f"Restore the newest copy of `{self.table}`; or stop the joins, run `clickjoin registry rebuild "
                "--replace`, then `clickjoin verify --repair`"
            )
        return f"Restore the newest copy of `{self.table}`, or run `clickjoin verify --repair` until nothing is left"

    @property
    def _undo(self) -> str:
        """What brings rows back that a RESTORE took out."""
        undo = f"Undo it: RESTORE TABLE delta.`…/{self.table}` TO VERSION AS OF {self.number - 1}"
        if self.table in BOOKS:
            return undo
        rebuild = "`clickjoin journal rebuild --replace`, then " if self.table == JOURNAL else ""
        return f"{undo}; or stop the joins and run {rebuild}`clickjoin verify --repair`"


def disagreements(facts: Facts) -> list[Disagreement]:
    """All that does not fit together; where logs are torn only that, for the rest follows from it."""
    torn = [found for name, log in facts.logs.items() for found in _torn(facts, name, log)]
    if torn:
        return torn
    if facts.blind:
        return [Disagreement(BLIND, JOURNAL, f"{facts.root}/{JOURNAL}: its rows cannot be read ({facts.blind})")]
    found = [*_noted(facts), *_put_back(facts)]
    for key in facts.sequences:
        found += [*_ahead(facts, key), *_behind(facts, key), *_unclaimed(facts, key)]
        found += [*_versions(facts, key), *_named(facts, key)]
    return _strongest(found)


def _torn(facts: Facts, name: str, log: TableLog) -> Iterator[Disagreement]:
    for torn in log.torn:
        place = f"{facts.root}/{name}/_delta_log/{torn.file}"
        lost = "no engine reads its table so" if torn.file == POINTER else "what was committed with it is lost"
        yield Disagreement(TORN, name, f"{place}: {torn.why}; {lost}", version=torn.version)


def _ahead(facts: Facts, key: Key) -> Iterator[Disagreement]:
    """Tables that hold batches which the journal does not know: a new batch of that number would be taken for done."""
    app, planned = _app(facts, key), facts.sequences[key].planned
    for table in facts.logs:
        most = max(facts.txns(table, key).values(), default=0)
        if table != JOURNAL and most > planned:
            text = (
                f"{facts.root}/{JOURNAL}: is older than table {table}, which holds batch {most} of {app}: the journal "
                f"knows batches to {planned}"
            )
            yield Disagreement(OLD_JOURNAL, JOURNAL, text, app, most)


def _behind(facts: Facts, key: Key) -> Iterator[Disagreement]:
    """Tables that lack batches which were seen in them before."""
    for name, number in facts.sequences[key].held.txns.items():
        table, _, part = name.partition("/")
        if table in facts.logs:
            there = facts.txns(table, key).get(name, 0)
            yield from _old(facts, table, f"{_app(facts, key)}{'/' * bool(part)}{part}", there, number, "the journal")


def _unclaimed(facts: Facts, key: Key) -> Iterator[Disagreement]:
    claimed = facts.txns("registry", key).get("registry", 0) if "registry" in facts.logs else 0
    for table in _AFTER_CLAIMS.get(key[1], ()):
        if table in facts.logs:
            number = facts.txns(table, key).get(table, 0)
            yield from _old(facts, "registry", _app(facts, key), claimed, number, f"table {table}")


def _old(facts: Facts, table: str, app: str, there: int, number: int, by: str) -> Iterator[Disagreement]:
    if there < number:
        text = (
            f"{facts.root}/{table}: is older than {by}, or has lost commits: batch {number} of {app} was committed to "
            f"it, and it holds batches to {there}"
        )
        yield Disagreement(OLD_TABLE, table, text, app, number)


def _versions(facts: Facts, key: Key) -> Iterator[Disagreement]:
    yield from _older(facts, facts.sequences[key].held.tables, f"seen by {_app(facts, key)}")


def _noted(facts: Facts) -> Iterator[Disagreement]:
    """Tables put back to before what rests on them: claims that were dropped below a boundary, an entry in force."""
    yield from _older(facts, facts.noted, "noted in the journal")


def _put_back(facts: Facts) -> Iterator[Disagreement]:
    for table, log in facts.logs.items():
        if log.put_back > log.txns.get(RESTORE, 0):
            text = restored_text(f"{facts.root}/{table}", log.put_back)
            yield Disagreement(OLD_TABLE, table, text, RESTORE, log.put_back)


def _older(facts: Facts, known: Shown, how: str) -> Iterator[Disagreement]:
    for table, (table_id, version) in known.items():
        if table in facts.logs and facts.logs[table].table_id == table_id and facts.version(table) < version:
            text = (
                f"{facts.root}/{table}: is older than the journal, or has lost commits: its version {version} was {how}"
                f", and it ends with {facts.version(table)}"
            )
            yield Disagreement(OLD_TABLE, table, text, version=version)


def _named(facts: Facts, key: Key) -> Iterator[Disagreement]:
    """Tables that end before a version which the plan of an unsettled batch names: its rows could not be read."""
    sequence = facts.sequences[key]
    for table, version in sequence.named.items():
        if table in facts.logs and facts.version(table) < version:
            text = (
                f"{facts.root}/{table}: is older than the journal, or has lost commits: batch {sequence.planned} of "
                f"{_app(facts, key)} was planned on its version {version}, and it ends with {facts.version(table)}"
            )
            yield Disagreement(OLD_TABLE, table, text, version=version)


def _strongest(found: list[Disagreement]) -> list[Disagreement]:
    """Once each, the journal's own first: while it is older, no other table can be judged by it."""
    order = {OLD_JOURNAL: 0, OLD_TABLE: 1}
    return sorted(dict.fromkeys(found), key=lambda one: (order[one.kind], one.table, -one.number, -one.version))


def first_of_each(found: list[Disagreement]) -> list[Disagreement]:
    """The weightiest of each table."""
    return list({one.table: one for one in reversed(found)}.values())[::-1]


def _app(facts: Facts, key: Key) -> str:
    return f"{facts.pipeline}/{'/'.join(key)}"
