"""Metrics of months as bins of time: nothing is counted twice or left out, however the files are cut."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from clickjoin.engines.arrow import ArrowTables
from clickjoin.model.batch_plan import COUNTS, STEPS
from clickjoin.model.ids import EPOCH
from clickjoin.report import history as module
from clickjoin.report.history import History
from clickjoin.report.overview import WINDOWS, figures, recent, series
from clickjoin.schemas import METRICS

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def metric(batch: int, ago: float, replica: str = "main", sequence: str = "join", **more: Any) -> dict[str, Any]:
    """A settled batch, so many seconds ago."""
    at = NOW - timedelta(seconds=ago)
    row = {"replica": replica, "sequence": sequence, "batch": batch, "planned_at": at, "settled_at": at}
    row |= dict.fromkeys(COUNTS, 0) | {f"seconds_{step}": 0.5 for step in STEPS}
    return row | {"backlog_events": 0, "backlog_bytes": 0} | more


def latency(p50: float, p90: float, p99: float) -> dict[str, float]:
    return {"latency_p50": p50, "latency_p90": p90, "latency_p99": p99}


@pytest.fixture
def delta(tmp_path: Path) -> ArrowTables:
    tables = ArrowTables(f"{tmp_path}/p")
    tables.create(METRICS)
    return tables


def whole(history: History, seconds: int = 300, since: datetime = EPOCH) -> Counter[tuple[str, str, str]]:
    """All counts that bins hold, by replica, sequence and name."""
    found: Counter[tuple[str, str, str]] = Counter()
    for row in history.bins(seconds, since).to_pylist():
        for name in ("batches", *COUNTS):
            found[row["replica"], row["sequence"], name] += row[name]
    return found


def test_every_batch_counts_once_however_its_files_are_cut(delta: ArrowTables, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LARGE_ROWS", 5)
    chance, history = random.Random(7), History(delta)
    expected: Counter[tuple[str, str, str]] = Counter()
    for batch in range(1, 61):
        replica, sequence = chance.choice(["main", "west"]), chance.choice(["join", "retry"])
        counted = {name: chance.randrange(5) for name in COUNTS}
        delta.append("metrics", [metric(batch, chance.randrange(40 * 86400), replica, sequence, **counted)])
        expected.update({(replica, sequence, name): number for name, number in counted.items()})
        expected[replica, sequence, "batches"] += 1
        if not batch % 17:  # what a collection does: many files become few
            DeltaTable(delta.path("metrics")).optimize.compact()
        if not batch % 5:
            history.refresh(EPOCH, NOW)
            assert whole(history) == expected
    assert history.unread == 0
    assert whole(History(delta)) == Counter()  # nothing is read before it is asked for


def test_a_large_file_is_read_as_far_back_as_asked_for(delta: ArrowTables, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LARGE_ROWS", 5)
    delta.append("metrics", [metric(50 - day, day * 86400 + 60, joined=1) for day in range(50)])
    history = History(delta)
    for days, read in ((1, 1), (7, 7), (1, 7), (90, 50)):
        history.refresh(NOW - timedelta(days=days), NOW)
        assert whole(history)["main", "join", "joined"] == read
    assert len(history.newest()) == 50
    assert history.newest(1)["batch"].to_pylist() == [50]


def test_where_nothing_is_new_all_is_read(delta: ArrowTables) -> None:
    delta.append("metrics", [metric(1, 40 * 86400, joined=3)])
    history = History(delta)
    assert figures(history, NOW)["main"]["last_join_at"] == "2026-01-20T12:00:00+00:00"
    assert recent(history, NOW, 10)[0]["joined"] == 3


def test_too_many_small_files_are_said(delta: ArrowTables, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_FILES", 3)
    for batch in range(1, 8):
        delta.append("metrics", [metric(batch, 700 - 100 * batch)])
    history = History(delta)
    history.refresh(EPOCH, NOW)
    assert history.unread == 4
    assert sorted(history.newest()["batch"].to_pylist()) == [5, 6, 7]


def test_series(delta: ArrowTables) -> None:
    delta.append("metrics", [
        metric(1, 590, joined=30, events_in=40, repeats=8, **latency(1.0, 2.0, 3.0), backlog_events=9),
        metric(2, 580, joined=10, events_in=10, **latency(3.0, 6.0, 9.0), backlog_events=4),
        metric(3, 570, joined=0, wasted=2),
        metric(1, 565, sequence="retry", joined=5, events_in=6, **latency(90.0, 90.0, 90.0)),
        metric(1, 10, replica="west", joined=7, **latency(1.5, 2.5, 2.5)),
    ])  # fmt: skip
    found = series(History(delta), NOW, 24)
    assert len({len(values) for values in found.values() if isinstance(values, list)}) == 1
    assert sum(found["joined"]) == 52
    at = found["at"].index(int(NOW.timestamp()) - 600)
    assert (found["joined"][at], found["events_in"][at], found["wasted"][at], found["batches"][at]) == (45, 56, 2, 4)
    assert found["accepted"][at] == 42  # neither repeats nor what a retry reads again
    assert (found["p50"][at], found["p90"][at], found["p99"][at], found["worst"][at]) == (1.5, 3.0, 4.5, 9.0)
    assert (found["backlog_events"][at], found["plan"][at]) == (9, 0.5)
    assert (found["joined"][at + 1], found["p90"][at + 1]) == (7, 2.5)
    assert (found["joined"][0], found["p90"][0], found["plan"][0]) == (0, None, None)
    only = series(History(delta), NOW, 1, "west")
    assert sum(only["joined"]) == 7
    assert only["seconds"] == 15


def test_a_chart_begins_where_the_data_does(delta: ArrowTables) -> None:
    end, width = int(NOW.timestamp()), WINDOWS[24]
    delta.append("metrics", [metric(1, 10 * 3600, joined=1)])
    assert series(History(delta), NOW, 24)["at"][0] == end - 10 * 3600 - width
    assert series(History(delta), NOW, 1)["at"][0] == end - 3600  # nothing is as new: all of what was asked for
    delta.append("metrics", [metric(2, 60, joined=1, replica="west")])
    assert series(History(delta), NOW, 24, "west")["at"] == series(History(delta), NOW, 24)["at"]
    delta.append("metrics", [metric(0, 30 * 3600)])
    assert series(History(delta), NOW, 24)["at"][0] == end - 24 * 3600  # nothing happened at first, and is shown
    assert len(series(History(delta), NOW, 24)["at"]) == 24 * 3600 / width + 1


def test_a_chart_of_a_young_pipeline_has_a_few_bins(delta: ArrowTables) -> None:
    delta.append("metrics", [metric(1, 60, joined=1)])
    assert len(series(History(delta), NOW, 24)["at"]) == 13


def test_a_large_file_that_was_not_read_whole_is_older(delta: ArrowTables, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LARGE_ROWS", 5)
    delta.append("metrics", [metric(50 - hour, hour * 3600 + 60, joined=1) for hour in range(30)])
    end = int(NOW.timestamp())
    assert series(History(delta), NOW, 24)["at"][0] == end - 24 * 3600
    assert series(History(delta), NOW, 168)["at"][0] == end - 30 * 3600 - WINDOWS[168] + 1800


def test_figures(delta: ArrowTables) -> None:
    problem = '[{"kind": "missing", "path": "/x", "detail": "no file"}]'
    delta.append("metrics", [
        metric(1, 20 * 3600, joined=900, events_in=950, repeats=40, wasted=3),
        metric(2, 30, joined=90, events_in=100, repeats=10, watermark=NOW - timedelta(seconds=45),
               **latency(1.0, 2.0, 3.0), backlog_events=7,
               problems=problem),
        metric(1, 5, sequence="retry", joined=90, events_in=95, **latency(3.0, 4.0, 5.0), backlog_events=None),
        metric(4, 3600, replica="west", joined=1, **latency(8.0, 8.0, 8.0)),
    ])  # fmt: skip
    found = figures(History(delta), NOW)
    main, west = found["main"], found["west"]
    assert (main["last_join_at"], main["backlog_events"]) == ("2026-03-01T11:59:30+00:00", 7)
    assert main["latency"] == {"p50": 1.0, "p90": 2.0, "p99": 3.0}  # a retry's events have waited: they are no measure
    assert main["joined_per_second"] == 0.2
    assert main["problems"][0]["kind"] == "missing"
    assert (main["day"]["joined"], main["day"]["wasted"], main["day"]["batches"]) == (1080, 3, 3)
    assert (main["day"]["accepted"], main["day"]["events_in"]) == (1000, 1145)
    assert (main["watermark"], west["watermark"]) == ("2026-03-01T11:59:15+00:00", None)
    assert west["latency"]["p90"] == 8.0  # of its last batch: none is newer
    assert west["joined_per_second"] == 0


def test_of_an_empty_lake(delta: ArrowTables) -> None:
    assert figures(History(delta), NOW) == {}
    assert set(series(History(delta), NOW, 168)["joined"]) == {0}
    assert recent(History(delta), NOW, 5) == []
