"""Why events wait or were given up: of many at once the same is said as of each alone."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from clickjoin.config import Pipeline
from clickjoin.engines.arrow import ArrowTables
from clickjoin.report.why_unjoined import why_each, why_unjoined
from clickjoin.schemas import BY_NAME
from tests.unit.lakes import NOON, pipeline

SECOND = timedelta(seconds=1)


def landed(folder: Path, primary: dict[str, timedelta], primary_time: Any) -> tuple[Pipeline, ArrowTables]:
    """A lake with primary events, by id and how long after noon they are."""
    raw = pipeline(folder).model_dump(exclude_defaults=True)
    raw["foreign"]["primary_time"] = primary_time
    chosen = Pipeline.model_validate(raw)
    delta = ArrowTables(chosen.root)
    delta.create(BY_NAME["primary"])
    bucket = "2026-03-01T1200Z"
    rows = [{"event_id": name, "event_time": NOON + at, "bucket": bucket} for name, at in primary.items()]
    delta.append("primary", rows)
    return chosen, delta


def event(primary_id: str | None, at: timedelta = timedelta(), named: timedelta | None = None) -> dict[str, Any]:
    return {
        "primary_id": primary_id,
        "event_time": NOON + at,
        "primary_time": None if named is None else NOON + named,
    }


@pytest.mark.parametrize(
    ("primary_time", "events", "said"),
    [
        (
            {"lookback": "2m"},
            [event("here"), event("before"), event("ahead"), event("case"), event("far"), event("none"), event(None)],
            ["'here' has landed since", "lies 0:05:00 before it", "lies 5 s after it", "but 'Case ' has", "", "", None],
        ),
        (
            "at",
            [event("here", named=SECOND * 0), event("here", named=SECOND * 9), event("case", named=SECOND * 0)],
            ["'here' has landed since", "(9 s apart)", "but 'Case ' has"],
        ),
    ],
)
def test_of_each_the_same_is_said_as_alone(
    tmp_path: Path, primary_time: Any, events: list[dict[str, Any]], said: list[str | None]
) -> None:
    """One is spelt otherwise, and one has such an id only two days away."""
    primary = {"here": 0, "before": -300, "ahead": 5, "Case ": -1, "FAR": 172_800}
    chosen, delta = landed(tmp_path, {name: at * SECOND for name, at in primary.items()}, primary_time)
    found = why_each(chosen, delta, events)
    assert found == [why_unjoined(chosen, delta, one) for one in events]
    for text, wanted in zip(found, said, strict=True):
        assert (wanted in text) if wanted else (text.endswith("has not landed") if wanted == "" else text == "")


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (
            3590,
            "lies 0:59:50 after it (2026-03-01T12:59:50+00:00), so far that the `zone` of one stream is probably wrong",
        ),
        (1800, "so far that the `zone`"),
        (1200, "raise that, or set the clock or zone that is ahead"),
    ],
)
def test_one_that_lies_after_it(tmp_path: Path, seconds: int, said: str) -> None:
    chosen, delta = landed(tmp_path, {"q": seconds * SECOND}, {"lookback": "2m"})
    assert said in why_unjoined(chosen, delta, event("q"))


def test_many_are_looked_up_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen, delta = landed(tmp_path, {"q": SECOND}, {"lookback": "2m"})
    reads: list[str] = []
    read, batches = delta.read, delta.batches
    monkeypatch.setattr(delta, "read", lambda *given: reads.append("read") or read(*given))
    monkeypatch.setattr(delta, "batches", lambda *given: reads.append("batches") or batches(*given))
    assert len(set(why_each(chosen, delta, [event(f"q{n}", n * SECOND) for n in range(50)]))) == 50
    assert reads == ["read", "batches"]


@pytest.mark.parametrize(
    ("primary", "foreign", "says"),
    [
        ("1", "1.0", "'1' has"),
        ("007", "7", "'007' has"),
        ("550E8400-E29B-41D4-A716-446655440000", "550e8400e29b41d4a716446655440000", "41D4"),
        ("é", "e\u0301", "'é' has"),
        ("1000000000000000001", "1000000000000000000", "'1000000000000000001' has: a program that keeps ids as floats"),
        ("1000000000000000301", "1000000000000000000", ""),
        ("10", "1", ""),
        ("1.5", "1", ""),
        ("a1", "a2", ""),
        ("0", "00", "'0' has"),
    ],
)
def test_other_spellings_of_an_id(tmp_path: Path, primary: str, foreign: str, says: str) -> None:
    chosen, delta = landed(tmp_path, {primary: timedelta()}, {"lookback": "2m"})
    said = why_unjoined(chosen, delta, event(foreign))
    assert said.startswith(f"Its primary event {foreign!r} has not landed")
    assert says in said
    assert ("but" in said) == bool(says)
