"""The feeder: the same script from the same seed, every line where and when it belongs, and a ledger that is true."""

from __future__ import annotations

import csv
import json
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from demo.feeder import Feeder, main
from demo.script import BROKEN, BROKEN_TIMES, HELD, ORPHANS, REPEATS, WARM_CLICKS, Script, script
from demo.shipping import ObjectFeeder
from tests import oracle

NOW = 1_900_000_000_000_000
SECONDS = 60.0
PLAN = script(SECONDS)


@dataclass
class FakeTime:
    """A clock that moves only when someone waits."""

    now: float = 1_800_000_000.0

    def sleep(self, seconds: float) -> None:
        """Wait."""
        self.now += seconds


def feed(folder: Path, plan: Script = PLAN) -> tuple[Feeder, FakeTime]:
    """Feed a script to its end, in no time; ready after a second."""
    time = FakeTime()
    feeder = Feeder(plan, folder / "logs", folder / "ledger.csv", clock=lambda: time.now, sleep=time.sleep)
    feeder.feed(ready=lambda: time.now >= 1_800_000_001)
    return feeder, time


def test_same_seed_same_script() -> None:
    assert script(SECONDS) == PLAN
    assert script(SECONDS, seed=2).lines != PLAN.lines


def test_what_goes_wrong_is_what_was_promised() -> None:
    kinds = Counter((line.stream, line.kind) for line in PLAN.lines)
    expected = {("clicks", "good"): 207, ("clicks", "orphan"): ORPHANS, ("impressions", "held"): HELD}
    expected |= {("impressions", "good"): 40_000 - HELD}
    expected |= {(stream, "repeat"): times for stream, times in REPEATS.items()}
    expected |= {(stream, kind): BROKEN_TIMES for stream in REPEATS for kind in BROKEN}
    assert kinds == expected
    for line in PLAN.lines:
        found = oracle.good(line.data, "query_id" if line.stream == "clicks" else None, NOW)
        assert (found[0] if found else "") == line.event_id


def test_order_of_writing() -> None:
    at = {line.event_id: line.at for line in reversed(PLAN.lines)}  # of a repeated line, the first time
    named = {
        line.event_id: json.loads(line.data)["query_id"]
        for line in PLAN.lines
        if line.kind == "good" and line.stream == "clicks"
    }
    held = {line.event_id for line in PLAN.lines if line.kind == "held"}
    assert {click for click, shown in named.items() if at[click] < at[shown]} == {
        click for click, shown in named.items() if shown in held
    }
    assert [line.at for line in PLAN.lines] == sorted(line.at for line in PLAN.lines)
    assert max(at.values()) <= SECONDS
    first = PLAN.lines[: PLAN.warm]
    assert sum(line.stream == "clicks" for line in first) == WARM_CLICKS
    assert first[-1].at < 0 <= PLAN.lines[PLAN.warm].at
    # Repeated lines are copies of lines written before.
    good = {(line.event_id, line.data) for line in PLAN.lines if line.kind != "repeat"}
    assert all((line.event_id, line.data) in good for line in PLAN.lines if line.kind == "repeat")


def test_logs_and_ledger_agree(tmp_path: Path) -> None:
    feeder, time = feed(tmp_path)
    logs = {stream: oracle.read_log(f"{tmp_path}/logs/{stream}/*", None, NOW) for stream in REPEATS}
    with (tmp_path / "ledger.csv").open(newline="") as handle:
        rows = list(csv.reader(handle))
    assert len(rows) == len(PLAN.lines) == sum(log.lines for log in logs.values())
    for stream, log in logs.items():
        assert {row[1] for row in rows if row[0] == stream and row[1]} == log.ids.keys()
    for line, row in zip(PLAN.lines, rows, strict=True):
        written = int(row[3]) / 1e6 - 1_800_000_000
        assert written == 0 if line.at < 0 else 0 < written - 1 - line.at < 0.05
    assert time.now - 1_800_000_000 == pytest.approx(SECONDS + 1, abs=0.1)
    assert feeder.done


def test_one_file_is_rotated_and_nothing_is_lost(tmp_path: Path) -> None:
    feed(tmp_path)
    folder, name = tmp_path / "logs" / PLAN.rotated[0], PLAN.rotated[1]
    old, new = folder / f"{name}.1", folder / name
    mine = [line for line in PLAN.lines if (line.stream, line.file) == PLAN.rotated]
    assert old.read_bytes() + new.read_bytes() == b"".join(line.data + b"\n" for line in mine)
    assert len(old.read_bytes().splitlines()) == sum(line.at < PLAN.rotate_at for line in mine)


def test_fed_twice_into_one_folder_every_line_is_there_twice(tmp_path: Path) -> None:
    delta = replace(PLAN, lines=PLAN.lines[:3000], rotate_at=PLAN.lines[2000].at)
    for _ in range(2):
        feed(tmp_path, delta)
    rotated = sorted(path.name for path in (tmp_path / "logs/impressions").glob("men-bts*"))
    assert rotated == ["men-bts.jsonl", "men-bts.jsonl.1", "men-bts.jsonl.2"]
    lines = [line for path in (tmp_path / "logs").glob("*/*") for line in path.read_bytes().splitlines()]
    assert Counter(lines) == Counter(2 * [line.data for line in delta.lines])


def test_stops_when_asked(tmp_path: Path) -> None:
    time = FakeTime()
    feeder = Feeder(PLAN, tmp_path / "logs", tmp_path / "ledger.csv", clock=lambda: time.now, sleep=time.sleep)
    feeder.feed(stop=lambda: time.now > 1_800_000_010)
    assert 0 < len(feeder.entries) < len(PLAN.lines)
    assert not feeder.done


def test_as_a_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--to", str(tmp_path / "logs"), "--seconds", "0.5"]) == 0
    assert f"fed {len(PLAN.lines):,} lines" in capsys.readouterr().out
    assert main(["--to", "/proc/none/logs"]) == 1
    assert "clickjoin: /proc/none/logs" in capsys.readouterr().err


def test_as_objects(tmp_path: Path) -> None:
    """The same lines, each in one object, at most a second after it was written; nothing is held back at the end."""
    time, objects, at = FakeTime(), dict[str, bytes](), dict[str, float]()

    def put(key: str, data: bytes) -> None:
        assert key not in objects
        objects[key], at[key] = data, time.now

    feeder = ObjectFeeder(
        PLAN, tmp_path / "logs", tmp_path / "ledger.csv", put=put, clock=lambda: time.now, sleep=time.sleep
    )
    feeder.feed(ready=lambda: time.now >= 1_800_000_001)
    for stream in ("impressions", "clicks"):
        found = Counter(line for key, data in objects.items() if key.startswith(stream) for line in data.splitlines())
        assert found == Counter(line.data for line in PLAN.lines if line.stream == stream)
    assert all(key.split("/")[1] == "dt=2027-01-15" for key in objects)
    written = [entry.written_at / 1e6 for entry in feeder.entries]
    assert max(min(late - moment for late in at.values() if late >= moment) for moment in written) <= 1.03
