"""What was wrong or left open for the logs of card terminals, and for the telemetry of a game."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from clickjoin.config import load
from clickjoin.proposal.columns import as_time
from clickjoin.proposal.file import propose
from clickjoin.report.validate import validate
from tests.unit.proposal_bench import lines

BERLIN = ZoneInfo("Europe/Berlin")
CHANGE = datetime(2026, 10, 24, 23, 0, tzinfo=UTC)  # an hour before clocks go back


def local(at: datetime) -> str:
    """As terminals print it, with the name of the zone."""
    here = at.astimezone(BERLIN)
    return f"{here:%d.%m.%Y %H:%M:%S} {here.tzname()}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder for two logs."""
    for name in ("first", "then"):
        (tmp_path / name).mkdir()
    return tmp_path


def test_card_terminals(folder: Path) -> None:
    """An amount is no id, though it has a comma and is nearly unique; the zone's names say which hour is meant."""
    rng = random.Random(4)
    paid = [
        (CHANGE + timedelta(seconds=11 * n), f"{amount / 100:.2f}".replace(".", ","), f"{rng.randrange(10**12):012d}")
        for n, amount in enumerate(rng.sample(range(100, 99_999), 600))
    ]
    again = paid[:590] + [(at, paid[0][1], number) for at, _, number in paid[590:]]  # some cost as much as another
    (folder / "first" / "a.csv").write_text(
        "Zeit;Betrag;RRN\n" + "".join(f"{local(at)};{amount};{number}\n" for at, amount, number in again)
    )
    booked = [(f"{n:09d}", *rest) for n, rest in enumerate(again[::2])]
    (folder / "then" / "c.csv").write_text(
        "Stand;;;\nNr;Betrag;RRN;gebucht am\n"
        + "".join(
            f"{number};{amount};{rrn};{local(at + timedelta(seconds=400))}\n" for number, at, amount, rrn in booked
        )
    )
    (folder / "p.yaml").write_text(propose("first/*", "then/*", folder).text)
    found = load(folder / "p.yaml")
    assert found.foreign
    assert found.primary
    assert (found.primary.event_id, found.foreign.primary_id) == (("RRN",), ("RRN",))
    assert str(found.primary.event_time) == "Zeit as %d.%m.%Y %H:%M:%S %Z in Europe/Berlin"
    seen = validate(found)
    assert seen.matches
    assert (seen.problems, seen.matches.found) == ([], len(booked))
    times = {key.event_id: key.event_time for key in seen.samples["primary"].keys}
    assert times == {number: round(at.timestamp() * 1e6) for at, _, number in again}


@pytest.mark.parametrize("floats", [False, True])
def test_a_games_telemetry(folder: Path, floats: bool) -> None:
    """Times by their values; lists within an event are none of events; ids may be floats that are whole."""
    rng, start = random.Random(4), 1_795_000_000_000_000
    teams = [{"name": "a", "who": [7]}, {"name": "b"}]
    games: list[dict[str, Any]] = [
        {"game": {"id": rng.getrandbits(62)}, "us": start + n * 10**6, "teams": teams} for n in range(300)
    ]
    lines(folder / "first" / "g.json", games)
    kills, count = [], 0
    for _ in range(90):
        events = []
        for _ in range(rng.randrange(2, 9)):
            game, count = rng.choice(games), count + 1
            number = float(count) if floats else count
            events.append({"eid": number, "t": game["us"] + rng.randrange(1, 10**8), "game": game["game"]["id"]})
        kills.append({"session": {"id": rng.getrandbits(60), "events": events}})
    lines(folder / "then" / "k.json", kills)
    proposal = propose("first/*", "then/*", folder)
    values = {name: choice.value for name, choice in proposal.choices.items()}
    assert (values["primary.event_id"], values["primary.event_time"]) == (("game.id",), "us")
    assert (values["foreign.primary_id"], values["foreign.event_time"]) == (("game",), "t")
    assert values["foreign.event_id"] == ("eid",)
    (folder / "p.yaml").write_text(proposal.text)
    seen = validate(load(folder / "p.yaml"))
    assert seen.matches
    assert (seen.problems, seen.matches.found) == ([], count)


@pytest.mark.parametrize(
    ("values", "is_time"),
    [
        ([1_795_000_000_000 + n for n in range(9)], True),
        ([str(1_795_000_000_000_000 + n) for n in range(9)], True),
        ([1_795_000_000 + n for n in range(9)], False),  # seconds are as other numbers are
        ([1_795_000_000_000_000_000 + n for n in range(9)], False),  # as are ids of a time and a counter
        ([4_006_381_333_931 + n for n in range(9)], False),
        (["²", 10**400, 1], False),
    ],
)
def test_numbers_that_are_times_without_a_name(values: list[Any], is_time: bool) -> None:
    found = as_time("x", values)
    assert (found is not None and not found.named) == is_time


def test_an_id_that_is_made_of_the_time(folder: Path) -> None:
    """A number of milliseconds is an id where the other log names it."""
    start = 1_795_000_000_000
    lines(folder / "first" / "o.json", [{"ticket": start + 37 * n, "at": start / 1000 + n} for n in range(300)])
    paid = [{"pay_id": n, "ticket": start + 37 * n, "at": start / 1000 + n + 9} for n in range(90)]
    lines(folder / "then" / "p.json", paid)
    values = {name: choice.value for name, choice in propose("first/*", "then/*", folder).choices.items()}
    assert (values["primary.event_id"], values["foreign.primary_id"]) == (("ticket",), ("ticket",))
    assert (values["primary.event_time"], values["foreign.event_time"]) == ("at", "at")


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_an_erps_dump(folder: Path, zone: str) -> None:
    """Headers that are no paths, German dates and times of day in two columns, a sum below: its file can be used."""
    start = datetime(2026, 11, 25, 8, tzinfo=UTC)
    notes = [(f"{n + 1:08d}", start + timedelta(seconds=40 * n)) for n in range(300)]
    rows = [f"{nr};{at.astimezone(BERLIN):%d.%m.%Y;%H:%M:%S};K{n % 7}" for n, (nr, at) in enumerate(notes)]
    text = "\ufeff" + "\r\n".join(["Lieferschein-Nr.;Datum;Uhrzeit;Kd. [Nr.]", *rows, "Summe;;;"]) + "\r\n"
    (folder / "first" / "a.csv").write_text(text)
    scans = [
        {"device": f"HT{n % 3}", "seq": n // 3, "ls": nr, "at": at.timestamp() + 30} for n, (nr, at) in enumerate(notes)
    ]
    lines(folder / "then" / "s.jsonl", [{"device": "HT0", "scans": scans[at : at + 9]} for at in range(0, 300, 9)])
    proposal = propose("first/*", "then/*", folder)
    values = {name: choice.value for name, choice in proposal.choices.items()}
    assert values["primary.event_id"] == ("`Lieferschein-Nr.`",)
    assert values["primary.event_time"] == {
        "column": ["Datum", "Uhrzeit"], "format": "%d.%m.%Y %H:%M:%S", "zone": "FILL_IN"
    }  # fmt: skip
    late = "all 300 sampled primary events lie up to 1 h after their clicks: "
    assert proposal.choices["primary.event_time"].why == late + "the zone of `Datum` and `Uhrzeit` is probably not UTC"
    assert proposal.choices["foreign.primary_time"].why == late + "a zone or a clock is wrong"
    (folder / "p.yaml").write_text(proposal.text.replace("zone: FILL_IN", f"zone: {zone}"))
    found = load(folder / "p.yaml")
    assert {column.source for column in found.output.columns.values()} == {"primary.`Kd. [Nr.]`"}
    seen = validate(found)
    assert seen.matches
    assert seen.matches.found == (300 if zone == "Europe/Berlin" else 0)


@pytest.mark.parametrize(
    ("ahead", "time", "primary_time"),
    [
        (
            7200,
            "a guess: all 300 sampled primary events lie up to 2 h after their clicks: the zone of `at` is probably",
            "",
        ),
        (
            5,
            "likely: 300 of 300 sampled records hold a time",
            "a guess: all 300 sampled primary events lie up to 5 s after",
        ),
        (-9000, "likely: 300", "likely: sampled primary events lie up to 9,000 s before their clicks; twice that is"),
        (-0.5, "likely: 300", "likely: sampled primary events lie up to 0 s before their clicks; twice that is"),
    ],
)
def test_times_that_name_no_zone(folder: Path, ahead: float, time: str, primary_time: str) -> None:
    """It is asked for where it shows to be another than UTC, and not where a clock is some seconds ahead."""
    start = datetime(2026, 11, 25, 8, tzinfo=UTC)
    clicks = [{"id": f"c{n}", "q": f"q{n}", "ts": (start + timedelta(seconds=n)).isoformat()} for n in range(300)]
    queries = [
        {"id": f"q{n}", "at": f"{start + timedelta(seconds=n + ahead):%Y-%m-%dT%H:%M:%S.%f}"} for n in range(300)
    ]
    lines(folder / "first" / "a.jsonl", queries)
    lines(folder / "then" / "b.jsonl", clicks)
    found = propose("first/*", "then/*", folder)
    said = {name: f"{one.sure}: {one.why}" for name, one in found.choices.items()}
    assert said["primary.event_time"].startswith(time)
    assert said["foreign.primary_time"].startswith(primary_time)
    assert ("{column: at, zone: FILL_IN}" in found.text) == (ahead == 7200)
    assert found.choices["foreign.event_time"].value == "ts"


def test_numbers_that_repeat_across_devices_named_around_the_array(folder: Path) -> None:
    """No column of an element tells them apart: none is proposed, and it says what an element lacks."""
    shown = [{"ad": f"ad-{n:05d}", "ts": 1_795_000_000 + n} for n in range(400)]
    lines(folder / "first" / "a.jsonl", shown)
    events = [{"n": n // 4, "ad": shown[n]["ad"], "at": 1_795_000_500 + n // 4} for n in range(400)]
    lines(folder / "then" / "b.jsonl", [{"dev": {"id": f"d{at % 4}"}, "events": events[at::4]} for at in range(4)])
    found = propose("first/*", "then/*", folder).choices["foreign.event_id"]
    assert found.value == ("FILL_IN",)
    assert "around the array `events` is in none of its elements: write it into each" in found.why
