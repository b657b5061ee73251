"""Recovery: what was damaged by hand is put right, once, wherever it is cut short; and doubles go only on request."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.sampled import in_full, some
from tests.spark.bench import Bench, event_id
from tests.spark.hand import FAULTS, Hand, damage, found, stopped, verify

LEFT = {"two_places": 1, "wrong_token": 2, "doubled_claim": 1}
POINTS = ("planned", "released", "dispatched", "returned", "doubles-kept", "doubles-gone", "recovered")


def settled(bench: Bench) -> dict[str, Any]:
    """Where every event is and whose it is, once those that were dispatched again have been tried."""
    bench.engine = bench.replica("main")
    bench.retry()
    assert bench.engine.retry_once() is None
    return {
        "joined": bench.rows("joined", "event_id", "primary_id", "foreign_record"),
        "claims": bench.rows("registry", "event_id", "shard", "bucket", "outcome"),
        "places": bench.places(),
    }


@pytest.fixture
def sound(hand: Hand) -> dict[str, Any]:
    """How it must be in the end: as before the damage, but for what no program should decide, and u waits again."""
    bench = hand.bench
    whole: dict[str, Any] = {
        "joined": bench.rows("joined", "event_id", "primary_id", "foreign_record"),
        "claims": bench.rows("registry", "event_id", "shard", "bucket", "outcome"),
        "places": bench.places(),
    }
    damage(hand)
    whole["claims"] = [
        (*row[:3], "filtered") if row[0].startswith("i:") else row for row in whole["claims"] if row[0][0] != "u"
    ]
    whole["claims"] = sorted([*whole["claims"], *(row for row in whole["claims"] if row[0].startswith("j:"))], key=repr)
    whole["places"] |= {"filtered": ["b", "f"], "pending": ["u", "w", "w"]}
    del whole["places"]["unjoinable"]
    return whole


def test_deletions_by_hand_are_repaired(hand: Hand, sound: dict[str, Any]) -> None:
    bench, before = hand.bench, len(hand.bench.rows("pending"))
    report = verify(bench, repair=True, remove_doubles=True)
    assert {count.kind: count.repaired for count in report.counts if count.repaired} == {
        "lost": 1,
        "doubled": 2,
        "output_without_claim": 2,
        "claim_without_output": 2,
        "unread": 2,  # k's record, of each replica: its output is known again
    }
    assert {count.kind: count.left for count in report.counts if count.left} == LEFT
    assert bench.rows("findings", "kind", "event_id")[0] == ("claim_without_output", event_id("g", 31))
    assert len(bench.rows("findings")) == sum(map(len, FAULTS.values())) - len(FAULTS["unknown_output"])
    pending = bench.rows("pending", "event_id", "state", "round", "attempt", "sequence", "replica", "payload")
    again = [row for row in pending if row[4] == "recover"]
    assert [(row[0].split(":")[0], *row[1:6]) for row in again] == [
        ("g", "waiting", 0, 0, "recover", "main"),
        ("u", "waiting", 0, 0, "recover", "main"),
        ("w", "waiting", 1, 0, "recover", "main"),
    ]
    assert [json.loads(row[6])["event_id"] for row in again] == [row[0] for row in again]
    assert len(pending) == before + 3
    doubles = [json.loads(row) for (row,) in bench.rows("removed_duplicates", "row")]
    assert sorted((row["event_id"][0], row["token"]) for row in doubles) == [
        ("d", "bench/main/join/1"),
        ("e", "bench/west/join/1"),
    ]
    assert {"primary_record", "foreign_record", "published_at", "price"} <= set(doubles[0])
    assert settled(bench) == sound
    assert bench.claims()["g"] == ("main/retry/4", "joined")
    assert found(verify(bench, replica="west")) == LEFT


@in_full
def test_a_second_repair_changes_nothing(hand: Hand, sound: dict[str, Any]) -> None:
    verify(hand.bench, repair=True, remove_doubles=True)
    before = hand.bench.all_tables()
    report = verify(hand.bench, repair=True, remove_doubles=True)
    assert found(report) == LEFT
    written = {"verification": [], "findings": []}
    assert hand.bench.all_tables() | written == before | written
    assert settled(hand.bench) == sound


@in_full
def test_cut_short_at_every_step(hand: Hand, sound: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    cut_short(hand, monkeypatch, "relanded", asked=True)
    assert "unread" not in found(verify(hand.bench))
    for point in some(POINTS, 4):
        cut_short(hand, monkeypatch, point, asked=point == POINTS[0])
    assert found(verify(hand.bench)) == LEFT  # what was asked for is finished, even if it is not asked for again
    assert settled(hand.bench) == sound
    assert sorted(row[0][0] for row in hand.bench.rows("removed_duplicates", "event_id")) == ["d", "e"]


def cut_short(hand: Hand, monkeypatch: pytest.MonkeyPatch, point: str, *, asked: bool) -> None:
    stopped(monkeypatch, point, lambda: verify(hand.bench, repair=asked, remove_doubles=asked))


@in_full
def test_doubles_stay_unless_asked_for(hand: Hand) -> None:
    hand.add("joined", hand.rows("joined", "d")[0])
    for _ in range(2):
        report = verify(hand.bench, repair=True)
        assert found(report) == {"doubled": 1}
        assert not any(count.repaired for count in report.counts)
    assert hand.bench.hosts("joined").count("d") == 2
    assert hand.bench.rows("removed_duplicates") == []
    assert {row[0] for row in hand.bench.rows("findings", "action")} == {None}


def test_an_event_without_its_record_is_left(hand: Hand) -> None:
    hand.delete("joined", "g")
    hand.delete("foreign", "g")
    logs = hand.bench.folder / "foreign"
    logs.rename(logs.with_name("away"))
    logs.mkdir()
    report = verify(hand.bench, repair=True)
    logs.rmdir()
    logs.with_name("away").rename(logs)
    assert found(report) == {"claim_without_output": 1}
    assert not any(count.repaired for count in report.counts)
    assert hand.bench.claims()["g"] == ("main/join/1", "joined")
    assert hand.bench.rows("findings", "action", "detail") == [(None, "its record is not in table `foreign` any more")]


@in_full
def test_a_record_is_read_again(hand: Hand) -> None:
    """Its event is given back to the join as well: records first, for ids hang on them."""
    hand.delete("joined", "g")
    hand.delete("foreign", "g")
    report = verify(hand.bench, repair=True)
    assert {count.kind: count.repaired for count in report.counts if count.repaired} == {
        "claim_without_output": 1,
        "unread": 2,
    }
    assert found(verify(hand.bench)) == {}
