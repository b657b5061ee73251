"""What the journal and the tables may say of one another: a batch under way is accepted at each of its steps."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest

from clickjoin.agreement.check import refusal, require_agreement
from clickjoin.agreement.facts import Facts, Sequence, gather, keys
from clickjoin.agreement.noted import note
from clickjoin.agreement.rules import OLD_JOURNAL, OLD_TABLE, TORN, disagreements
from clickjoin.dispatcher.committed import CommittedTxns
from clickjoin.dispatcher.journal import Journal
from clickjoin.engines.arrow import ArrowTables
from clickjoin.lake.log_entries import TableLog, Torn
from clickjoin.model.batch_plan import BatchPlan, TableSplit
from clickjoin.model.errors import LakeError
from clickjoin.registry.boundary import advance
from clickjoin.schemas import ALL

JOIN, RETRY = ("main", "join"), ("main", "retry")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
SEEN = {"primary": 4, "foreign": 4, "quarantine/foreign": 3, "registry": 4, "joined": 4, "unjoinable": 2, "pending": 3}
SEEN |= {"metrics": 4}
IDS = {name.partition("/")[0]: ("id", 10) for name in SEEN} | {"registry_boundary": ("id", 3)}
STEPS = ("planned", "foreign", "registry", "joined", "unjoinable", "metrics")


def facts(txns: Mapping[str, int], planned: int = 4, key: tuple[str, str] = JOIN, **more: TableLog) -> Facts:
    """Tables that hold these batches of a sequence, which is settled to batch 4."""
    logs = {name: TableLog(10, "id") for name in ("journal", *IDS)}
    app = f"p/{'/'.join(key)}"
    for name, number in txns.items():
        table, _, part = name.partition("/")
        held = {**logs[table].txns, f"{app}{'/' * bool(part)}{part}": number}
        logs[table] = TableLog(10, "id", txns=held)
    return Facts("p", "/lake/p", {**logs, **more}, {key: Sequence(planned, CommittedTxns(SEEN, IDS))})


def kinds(found: Facts) -> set[tuple[str, str]]:
    return {(one.kind, one.table) for one in disagreements(found)}


@pytest.mark.parametrize("done", range(len(STEPS) + 1))
def test_a_batch_under_way_is_no_matter(done: int) -> None:
    assert kinds(facts(SEEN | dict.fromkeys(STEPS[1:done], 5), planned=5)) == set()


def test_one_that_was_fenced_before_it_landed() -> None:
    assert kinds(facts(SEEN | {"registry": 5}, planned=5)) == set()


def test_an_older_journal() -> None:
    found = disagreements(facts(SEEN | {"joined": 6, "registry": 6}))
    assert {(one.kind, one.table) for one in found} == {(OLD_JOURNAL, "journal")}
    text = str(refusal(found))
    assert "/lake/p/journal: is older than table" in text
    assert "holds batch 6 of p/main/join: the journal knows batches to 4" in text
    assert "`clickjoin journal rebuild --replace`" in text


@pytest.mark.parametrize("name", list(SEEN))
def test_an_older_table(name: str) -> None:
    table, part = name.partition("/")[0], name.partition("/")[1:]
    found = [one for one in disagreements(facts(SEEN | {name: SEEN[name] - 1})) if one.table == table]
    assert {(one.kind, one.number) for one in found} == {(OLD_TABLE, SEEN[name])}
    app = f"p/main/join{''.join(part)}"
    assert f"batch {SEEN[name]} of {app} was committed to it, and it holds batches to {SEEN[name] - 1}" in found[0].text
    way = "registry rebuild --replace" if table == "registry" else "verify --repair"
    assert f"`clickjoin {way}`" in found[0].remedy


def test_an_output_without_the_claims_before_it() -> None:
    found = facts(SEEN | {"joined": 5}, planned=5)
    assert kinds(found) == {(OLD_TABLE, "registry")}
    redrive = facts({**SEEN, "pending": 5}, planned=5, key=("main", "redrive"))
    assert kinds(redrive) == {(OLD_TABLE, "registry")}
    retry = facts({**SEEN, "pending": 5}, planned=5, key=("main", "retry"))
    assert kinds(retry) == set()  # an event that waits on has no claim


def test_an_older_version() -> None:
    assert kinds(facts(SEEN, registry_boundary=TableLog(2, "id"))) == {(OLD_TABLE, "registry_boundary")}
    assert kinds(facts(SEEN, registry_boundary=TableLog(2, "another"))) == set()  # rebuilt: it begins again
    assert kinds(facts(SEEN, registry_boundary=TableLog(2, "id", txns={"accounted": 1}))) == set()


def test_a_plan_that_names_a_version_which_is_not_there() -> None:
    found = facts(SEEN, planned=5, key=RETRY)
    named = Facts("p", found.root, found.logs, {RETRY: Sequence(5, CommittedTxns(), {"pending": 10, "primary": 11})})
    assert kinds(named) == {(OLD_TABLE, "primary")}
    [one] = disagreements(named)
    assert "batch 5 of p/main/retry was planned on its version 11, and it ends with 10" in one.text
    accounted = {**found.logs, "primary": TableLog(10, "id", txns={"accounted": 1})}
    assert kinds(Facts("p", found.root, accounted, named.sequences)) == set()


def test_what_an_unsettled_plan_names_is_gathered(tmp_path: Path) -> None:
    delta = ArrowTables(str(tmp_path))
    for table in ALL:
        delta.create(table)
    part = TableSplit("pending", 3, due=0, limit=10, primary=2)
    plans = [BatchPlan("p", "main", "retry", number, number, table=part, snapshot=True) for number in (1, 2)]
    journal = Journal(delta, "p", "main", "retry")
    assert journal.plan(plans[0], NOW)
    assert gather(delta, "p").sequences[RETRY].named == {"pending": 3, "primary": 2}
    assert journal.settle(1, {}, NOW)
    assert gather(delta, "p").sequences[RETRY].named == {}
    assert journal.plan(plans[1], NOW)
    with pytest.raises(LakeError, match="batch 2 of p/main/retry was planned on its version 3, and it ends with 0"):
        require_agreement(delta, SimpleNamespace(pipeline="p"))  # type: ignore[arg-type]


def test_a_table_that_is_older_than_a_note(tmp_path: Path) -> None:
    delta = ArrowTables(str(tmp_path))
    for table in ALL:
        delta.create(table)
    advance(delta, 2, NOW, NOW)
    note(delta, "registry_boundary")
    require_agreement(delta, SimpleNamespace(pipeline="p"))  # type: ignore[arg-type]
    (tmp_path / "registry_boundary/_delta_log/00000000000000000001.json").unlink()
    with pytest.raises(
        LakeError, match=r"registry_boundary: is older.* its version 1 was noted in the journal, and it ends"
    ):
        require_agreement(ArrowTables(str(tmp_path)), SimpleNamespace(pipeline="p"))  # type: ignore[arg-type]


def test_a_torn_log_comes_before_all_else() -> None:
    log = TableLog(10, "id", torn=(Torn("00000000000000000010.json", "is empty", 10),))
    found = disagreements(facts(SEEN | {"joined": 9}, registry=log))
    assert [(one.kind, one.table) for one in found] == [(TORN, "registry")]
    assert "/lake/p/registry/_delta_log/00000000000000000010.json: is empty" in str(refusal(found))


def test_sequences_of_this_pipeline_alone() -> None:
    apps = ("p/main/join", "p/west/retry/planned", "p/main/join/foreign", "p/main/findings", "q/main/join", "timeline")
    assert keys(apps, "p") == [("main", "join"), ("west", "retry")]


def test_what_was_seen_only_grows() -> None:
    held = CommittedTxns()
    steps = [({"registry": 1, "journal/planned": 1}, {"registry_boundary": ("a", 3), "joined": ("x", 1)})]
    steps += [({}, {"registry_boundary": ("a", 2)}), ({"joined": 2}, {"registry_boundary": ("b", 1)})]
    seen = [held := held.plus(txns, tables) for txns, tables in steps]
    assert seen[0] == CommittedTxns({"registry": 1}, {"registry_boundary": ("a", 3)})
    assert all(later.txns.items() >= earlier.txns.items() for earlier, later in pairwise(seen))
    assert seen[-1] == CommittedTxns({"registry": 1, "joined": 2}, {"registry_boundary": ("b", 1)})
    assert CommittedTxns.from_plain(seen[-1].to_plain("p/main/join"), "p/main/join") == seen[-1]
    assert CommittedTxns.from_plain(seen[-1].to_plain("p/main/join"), "q/main/join") == CommittedTxns()
