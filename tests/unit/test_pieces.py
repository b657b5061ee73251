"""Plans that fit together, and those that leave bytes out or read some twice; what is in flight, as Spark SQL."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from clickjoin.dispatcher.journal import Journal
from clickjoin.engines.arrow import ArrowTables
from clickjoin.model.batch_plan import BatchPlan
from clickjoin.model.extent import text
from clickjoin.model.span import Span
from clickjoin.model.split import PlannedSplit
from clickjoin.schemas import BATCHES
from clickjoin.sources.completeness import Evidence
from clickjoin.sources.files.completeness import misfits, rewritten
from clickjoin.sources.files.state import FileSplit
from clickjoin.verification import records as of_batches
from clickjoin.verification.findings import Count, Older, Report
from clickjoin.verification.records import planned_splits
from clickjoin.verification.snapshot import Journals
from tests.unit.sources_bench import Feed, age, events, spec

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def piece(batch: int, start: int, end: int, **more: Any) -> PlannedSplit:
    cut = FileSplit(more.pop("generation", "g"), "/log", start, end, 0, "", 0, "", 1).to_split()
    return PlannedSplit(**{"replica": "main", "batch": batch, "stream": "foreign", "planned": 0, "split": cut, **more})


@pytest.mark.parametrize(
    ("found", "faults"),
    [
        ([], []),
        ([piece(1, 0, 5), piece(2, 5, 9), piece(3, 9, -1)], []),
        ([piece(2, 5, 9), piece(1, 0, 5)], []),
        ([piece(1, 0, 5), piece(2, 6, 9)], [("unread", 5, 6)]),
        ([piece(1, 0, 5), piece(7, 6, 9)], []),  # batches between them are not at hand
        ([piece(1, 0, 5), piece(2, 4, 9)], [("overread", 4, 5)]),
        ([piece(1, 0, -1), piece(2, 4, 9)], [("overread", 4, -1)]),
        ([piece(1, 0, 5), piece(2, 0, 5, replica="west"), piece(3, 0, 5, stream="primary")], []),
        ([piece(1, 0, 5), piece(2, 0, 5, generation="g+")], []),
        ([piece(1, 0, 5), piece(2, 5, 9, lost=True), piece(3, 5, 9)], []),
    ],
)
def test_misfits(found: list[PlannedSplit], faults: list[tuple[str, int, int]]) -> None:
    assert [(fault.kind, fault.where["from"], fault.where["to"]) for fault in misfits(found)] == faults


def journals(settled: dict[tuple[str, str], int], planned: dict[tuple[str, str], int]) -> Journals:
    return Journals("p", settled, planned)


def test_nothing_in_flight() -> None:
    calm = journals({("main", "join"): 7, ("main", "redrive"): 1}, {("main", "join"): 7, ("main", "redrive"): 1})
    assert (calm.open_tokens(), calm.open_sql(), calm.redriving_sql()) == ([], "FALSE", "FALSE")
    assert calm.settled_sql() == "(replica = 'main' AND batch <= 7)"
    assert journals({}, {}).settled_sql() == "FALSE"


def test_in_flight() -> None:
    """A sequence that the first look did not know is in flight from its first batch on."""
    busy = journals({("main", "join"): 7}, {("main", "join"): 9, ("w'est", "redrive"): 1})
    assert busy.open_tokens() == ["p/main/join/8", "p/main/join/9", "p/w'est/redrive/1"]
    assert busy.open_sql("t") == r"t IN ('p/main/join/8', 'p/main/join/9', 'p/w\'est/redrive/1')"
    assert busy.redriving_sql() == r"replica IN ('w\'est')"
    assert text("a\\'b") == r"'a\\\'b'"


AGAIN = "3 events are dispatched again: the running join, or `clickjoin drain`, joins them"


def test_a_report_says_what_was_looked_at() -> None:
    counts = (Count("lost", 0, 10), Count("output_without_claim", 1, 10))
    report = Report("main/1", NOON, Span(NOON - timedelta(hours=2), NOON - timedelta(hours=1)), counts)
    fixed = report.repaired({"output_without_claim": 1})
    part = "10 ids since 2026-03-01 10:00 until 2026-03-01 11:00 and 0 bytes of input checked"
    assert fixed.verdict == f"{part}: no fault left; repaired 1"  # its row was there all the time
    rest = "; older events were verified at 2026-03-01 11:30; all: --from 2026-02-25"
    older = Older(NOON - timedelta(minutes=30), NOON - timedelta(days=4))
    assert replace(fixed, older=older).verdict == fixed.verdict + rest
    assert replace(report, older=older).verdict == f"faults left: 1 output_without_claim{rest}"


def test_a_report() -> None:
    counts = (Count("lost", 3, 10), Count("doubled", 1, 10), Count("elsewhere", 4, 10, fault=False))
    report = Report("main/1", NOON, Span(NOON, NOON + timedelta(hours=1)), counts, 1.23456)
    assert (report.ok, report.verdict) == (False, "faults left: 3 lost, 1 doubled")
    fixed = report.repaired({"lost": 3})
    assert (fixed.ok, fixed.verdict) == (False, f"faults left: 1 doubled; repaired 3; {AGAIN}")
    whole = fixed.repaired({"lost": 3, "doubled": 1})
    part = "10 ids since 2026-03-01 12:00 and 0 bytes of input checked"
    assert (whole.ok, whole.verdict) == (True, f"{part}: no fault left; repaired 4; {AGAIN}")
    assert [row["repaired"] for row in whole.rows()] == [3, 1, 0]
    assert whole.to_dict()["counted"] == {"elsewhere": 4}
    assert whole.to_dict()["seconds"] == 1.235


def test_a_span() -> None:
    span = Span(NOON, NOON + timedelta(hours=2))
    assert span.extent(3600).buckets == ("2026-03-01T1200Z", "2026-03-01T1300Z")
    assert span.sql("t") == (
        "t >= TIMESTAMP '2026-03-01 12:00:00.000000+00:00' AND t < TIMESTAMP '2026-03-01 14:00:00.000000+00:00'"
    )


def test_pieces_of_the_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read in chunks, back to the range and to single batches before it; what is not settled is no piece."""
    delta = ArrowTables(str(tmp_path))
    delta.create(BATCHES)
    journal = Journal(delta, "p", "main", "join")
    for number in range(1, 10):
        at = NOON + timedelta(hours=number)
        splits = {"foreign": (piece(number, 10 * number, 10 * number + 10).split,)}
        journal.plan(BatchPlan("p", "main", "join", number, int(at.timestamp() * 1e6), splits), at)
        if number < 9:
            lost = {"foreign": {"g": None}} if number == 7 else {}
            journal.settle(number, lost, at)
    monkeypatch.setattr(of_batches, "_CHUNK", 2)
    read, chunks = delta.read, []
    monkeypatch.setattr(delta, "read", lambda *a, **k: chunks.append(k["filters"][-1]) or read(*a, **k))
    span = Span(NOON + timedelta(hours=6), NOON + timedelta(hours=9))
    found = planned_splits(delta, {("main", "join"): 8, ("main", "retry"): 3}, span, {("main", 2), ("west", 3)})
    assert [(part.batch, part.split.payload["start"], part.lost) for part in found] == [
        (2, 20, False),
        (6, 60, False),
        (7, 70, True),
        (8, 80, False),
    ]
    assert chunks == [("batch", "<=", 8), ("batch", "<=", 6), ("batch", "<=", 4), ("batch", "<=", 2)]
    chunks.clear()
    assert [part.batch for part in planned_splits(delta, {("main", "join"): 8}, span, {("main", 1)})] == [1, 6, 7, 8]
    assert chunks == [("batch", "<=", 8), ("batch", "<=", 6), ("batch", "<=", 4), ("batch", "<=", 2)]
    chunks.clear()
    late = Span(NOON + timedelta(hours=8), NOON + timedelta(hours=9))
    assert [part.batch for part in planned_splits(delta, {("main", "join"): 8}, late, {("main", 1)})] == [1, 8]
    assert chunks == [("batch", "<=", 8), ("batch", "<=", 6), ("batch", "<=", 2)]


def test_a_file_that_shows_no_change_and_holds_other_bytes(tmp_path: Path) -> None:
    """Only the verification of what was read from it finds that out."""
    logs = tmp_path / "logs"
    logs.mkdir()
    feed = Feed(logs)
    for name in "ab":
        (logs / f"{name}.jsonl").write_bytes(events(0, 50))
        age(logs / f"{name}.jsonl", 1000)
    first = feed.plan()
    known = {offset.partition: offset for offset in first.offsets}
    found = [PlannedSplit("main", 1, "foreign", 1, split) for split in first.splits]

    def evidence() -> Evidence:
        return Evidence(None, found, None, {"main": known}, lambda _: spec(), 0)  # type: ignore[arg-type]

    assert rewritten(feed.source, evidence()) == []
    (logs / "a.jsonl").write_bytes(events(50, 100))
    assert rewritten(feed.source, evidence()) == []  # that shows: a look checks it
    old = next(offset for offset in first.offsets if offset.payload["path"] == f"{logs}/a.jsonl")
    stat = (logs / "a.jsonl").stat()
    times = {"written_ns": stat.st_mtime_ns, "changed_ns": stat.st_ctime_ns}
    known[old.partition] = replace(old, payload=dict(old.payload) | times)
    (fault,) = rewritten(feed.source, evidence())
    where = {"from": 0, "to": len(events(0, 50))}
    assert (fault.kind, fault.planned.split.path, fault.where) == ("unproven", f"{logs}/a.jsonl", where)
