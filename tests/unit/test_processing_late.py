"""`late: correct`: what stands in `signals` is what all events say that are not too late, whatever is killed."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from checks.blocks import code
from clickjoin.model import failpoint
from clickjoin.model.ids import moment
from clickjoin.processing.check import check
from clickjoin.processors import SpikesAndDips
from clickjoin.report.processing import key_chart, signals
from tests.unit.processing_bench import (
    DAY,
    HOUR,
    MINUTE,
    NOON,
    SECOND,
    Output,
    by_text,
    expected,
    micros,
    through_kills,
    two_batches,
)  # fmt: skip
from tests.unit.processor_bench import BEGAN, Driver

POINTS = failpoint.PROCESS_POINTS
NAMES = ("key", "kind", "window_start", "count", "revision", "retracted")


def standing(out: Output) -> list[tuple[Any, ...]]:
    """Signals that were not taken back, after a look at the order and the names of all."""
    found = dict[tuple[Any, ...], tuple[Any, ...]]()
    rows = out.rows("signals")
    assert len({row["id"] for row in rows}) == len(rows)
    for row in sorted(rows, key=lambda row: (row["batch"], row["revision"] + (not row["retracted"]))):
        name = (row["key"], row["kind"], micros(row["window_start"]))
        if row["retracted"]:
            assert found.pop(name) == (row["count"], row["revision"])
        else:
            assert found.setdefault(name, (row["count"], row["revision"])) == (row["count"], row["revision"])
    return by_text([(*name, count) for name, (count, _) in found.items()])


def by_documented_sql(out: Output) -> list[tuple[Any, ...]]:
    """The same by the query of docs/processing.md, which runs in any SQL."""
    (text,) = code("processing.md", "sql")
    query = text.replace("s.*", f"s.{', s.'.join(NAMES)}", 1)
    rows = [
        tuple(micros(row[name]) if name == "window_start" else row[name] for name in NAMES)
        for row in out.rows("signals")
    ]
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute(f"CREATE TABLE signals ({', '.join(NAMES)})")
        db.executemany(f"INSERT INTO signals VALUES ({', '.join('?' * len(NAMES))})", rows)
        return by_text([row[:4] for row in db.execute(query)])


def test_late_events_correct_and_are_kept(tmp_path: Path) -> None:
    out = two_batches(tmp_path, late="correct", lateness="10m")
    out.drain()
    late = [("in", "hats", NOON + SECOND), ("out", "hats", NOON - HOUR), ("none", None, NOON), ("at", "shoes", NOON)]
    out.publish(late, NOON + MINUTE)
    (row,) = out.drain()
    assert (row["events"], row["late"], row["signals"]) == (0, 4, 4)
    kept = {row["event_id"]: row["reason"] for row in out.rows("late")}
    assert kept == {"in": "corrected", "out": "late", "none": "no-key", "at": "corrected"}
    ids = [row["id"] for row in out.rows("signals") if row["key"] == "hats"]
    stem = "TumblingCounts/count/2024-10-04 12:00:00.000000"
    assert ids == [f"{stem}#0-/hats", f"{stem}#1/hats", f"{stem}/hats"]
    assert standing(out) == by_text([("hats", "count", NOON, 2), ("shoes", "count", NOON, 4)])
    assert by_documented_sql(out) == standing(out)
    found = check(out.pipeline)
    assert (found.events, found.late, found.faults) == (5, 4, ())
    listed = signals(out.pipeline, "hats", 10)
    assert (listed.count, listed.groups, len(listed.rows)) == (3, [{"kind": "count", "count": 1}], 3)
    chart = key_chart(out.pipeline, "hats", moment(NOON + HOUR))
    ((shown,), not_given) = chart["signals"], chart["late"]
    assert (shown["count"], shown["revision"], not_given) == (2, 1, 1)  # of two late ones, one corrects


def test_a_spike_is_reported_once_though_its_key_was_to_be_forgotten_before_a_late_event() -> None:
    driver = Driver(SpikesAndDips("1m", "1d", warm="1m", ttl="2m", rest=0), BEGAN - DAY, lateness=HOUR)
    driver.batch([("a", BEGAN)] * 30, BEGAN + MINUTE)
    driver.batch([], BEGAN + 30 * MINUTE)
    driver.batch([("a", BEGAN)] * 30, BEGAN + 40 * MINUTE)
    assert [(kind, start) for _, kind, start, *_ in driver.signals] == [("spike", BEGAN)]
    driver.batch([], BEGAN + 2 * HOUR)
    assert not driver.state


EVENTS = st.lists(st.tuples(st.sampled_from(["a", "b", "c"]), st.integers(0, 300)), max_size=8)


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(EVENTS, st.integers(0, 150), st.sampled_from(("", *POINTS))), min_size=1, max_size=5))
def test_what_stands_is_a_count_by_hand_whatever_is_killed(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, batches: list[Any]
) -> None:
    out = Output(tmp_path_factory.mktemp("lake"), {"late": "correct", "lateness": "2m"})
    taken, rest, late, mark = through_kills(out, batches, 2 * MINUTE, monkeypatch)
    assert standing(out) == expected(taken, mark)
    found = check(out.pipeline)
    assert (found.events, found.late, found.faults, found.notes) == (rest, late, (), ())
    assert len(out.rows("late")) == late
