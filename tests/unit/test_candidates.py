"""What `explain` says of an event that is joined by a key and time: among which it was picked, or why none is."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from clickjoin.config import Pipeline
from clickjoin.engines.arrow import ArrowTables
from clickjoin.report.candidates import MOST, candidates
from clickjoin.report.why_unjoined import why_each
from clickjoin.schemas import BY_NAME
from tests.unit.lakes import NOON, pipeline


def lake(folder: Path, pick: str, *touches: tuple[str, float, str]) -> tuple[Pipeline, ArrowTables]:
    """Primary events by id, minutes after noon, and key."""
    raw = pipeline(folder).model_dump(exclude_defaults=True)
    match = {"on": "user", "within": "30m", "skew": "1m", "pick": pick}
    raw["foreign"] |= {"primary_id": None, "primary_time": None, "match": match}
    chosen = Pipeline.model_validate(raw)
    delta = ArrowTables(chosen.root)
    delta.create(BY_NAME["primary"])
    rows = [
        {"event_id": name, "event_time": NOON + timedelta(minutes=at), "bucket": "b", "match_key": key,
         "landed_at": NOON + timedelta(days=1)}
        for name, at, key in touches
    ]  # fmt: skip
    delta.append("primary", rows)
    return chosen, delta


def order(key: str, at: float = 40) -> dict[str, Any]:
    return {"event_id": "o", "event_time": NOON + timedelta(minutes=at), "primary_id": key, "primary_time": None}


TOUCHES = (
    ("old", 9, "u"), ("a", 10, "u"), ("b", 20, "u"), ("b", 20, "u"), ("b", 30, "u"), ("other", 30, "v"), ("o", 35, "u"),
    ("c", 41, "u"), ("late", 42, "u"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("pick", "joined", "expected"),
    [
        ("last", "c", {"a": "not the last", "b": "not the last", "c": "the last, joined"}),
        ("first", None, {"a": "the first", "b": "not the first", "c": "not the first"}),
        ("last", "b", {"a": "not the last", "b": "not the last, joined",
                       "c": "the last by now: it landed too late, rebuild the date to take it up"}),
    ],
)  # fmt: skip
def test_why_each_was_joined_or_not(tmp_path: Path, pick: str, joined: str | None, expected: dict[str, str]) -> None:
    chosen, delta = lake(tmp_path, pick, *TOUCHES)
    found = candidates(chosen, delta, order("u"), joined)
    assert found["count"] == 7
    said = {(one["event_id"], one["event_time"][11:16]): one["why"] for one in found["events"]}
    assert said == {
        ("old", "12:09"): "before match.within", ("a", "12:10"): expected["a"], ("b", "12:20"): expected["b"],
        ("b", "12:30"): "a copy of one up to an hour before", ("o", "12:35"): "the event itself",
        ("c", "12:41"): expected["c"], ("late", "12:42"): "after the event",
    }  # fmt: skip


def test_all_of_a_window(tmp_path: Path) -> None:
    chosen, delta = lake(tmp_path, "all", *TOUCHES)
    kept = {("a", (NOON + timedelta(minutes=10)).isoformat()), ("c", (NOON + timedelta(minutes=41)).isoformat())}
    for joined, had, missing in (
        ("c", ", joined", " by now: it landed too late, rebuild the date to take it up"),
        (None, "", ""),
    ):
        found = candidates(chosen, delta, order("u"), joined, kept)
        said = [one["why"] for one in found["events"] if one["why"].startswith("touch")]
        assert said == [f"touch 1 of 3{had}", f"touch 2 of 3{missing}", f"touch 3 of 3{had}"]


def test_of_many_the_nearest_to_where_one_is_picked(tmp_path: Path) -> None:
    chosen, delta = lake(tmp_path, "last", *((f"t{n}", 20 + n / 60, "u") for n in range(MOST + 5)))
    found = candidates(chosen, delta, order("u"), f"t{MOST + 4}")
    assert (found["count"], len(found["events"])) == (MOST + 5, MOST)
    assert found["events"][-1]["why"] == "the last, joined"
    assert candidates(chosen, delta, order(""), None) == {"count": 0, "events": []}


def test_why_none_was(tmp_path: Path) -> None:
    chosen, delta = lake(tmp_path, "last", ("t", 20, "u"), ("t2", 50, "v"), ("t3", 1, "w"))
    said = why_each(chosen, delta, [order(key) for key in ("", "x", "u", "v", "w")])
    wanted = [
        "has no key (user)", "No primary event with its key 'x'", "the last of them is joined once the primary stream",
        "lies 0:10:00 after it", "outside of foreign.match.within",
    ]  # fmt: skip
    assert [words in text for words, text in zip(wanted, said, strict=True)] == [True] * 5
