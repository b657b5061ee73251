"""The demo waits while anything changes, says when that is slow, and ends with commands that can be pasted."""

from __future__ import annotations

from pathlib import Path

import pytest

from bootstrap import Problem
from demo.__main__ import Demo
from demo.after import ended, next_steps, telling_click
from demo.feeder import Entry
from demo.lake import Lake
from demo.progress import GIVE_UP, SAY_EVERY, SLOW, Progress
from demo.store import Store
from tests.unit.test_demo_report import ENTRIES, finish, lake, write

__all__ = ["lake"]


class Clock:
    """Moves when somebody moves it."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_what_changes_is_progress(lake: Lake) -> None:
    clock = Clock()
    progress = Progress(clock)
    assert progress.look(lake.versions()) == 0
    clock.now += GIVE_UP + 1
    assert progress.look(lake.versions()) == GIVE_UP + 1
    write(lake, "joined", [{"event_id": "c7", "primary_id": "i1"}])
    assert progress.look(lake.versions()) == 0
    assert set(lake.versions()) == {"foreign", "primary", "joined", "pending", "quarantine"}


def test_a_slow_machine_is_named_now_and_then() -> None:
    clock = Clock()
    progress = Progress(clock)
    progress.look(1)
    assert progress.remark(9.0, 2) == ""
    clock.now += SLOW + SAY_EVERY
    said = progress.remark(9.0, 2)
    assert said.startswith(
        "nothing new for 90 s; the machine is busy (load 9.0, cores 2): waiting on, it gives up after"
    )
    assert progress.remark(9.0, 2) == ""
    clock.now += SAY_EVERY
    assert "is not busy (load 0.5, cores 2)" in progress.remark(0.5, 2)
    progress.look(2)
    clock.now += 1
    assert progress.remark(9.0, 2) == ""


class Servers:
    """A stack whose servers run, and whose API says nothing; or one of which has died."""

    logs = "/logs"

    def __init__(self, dead: str = "") -> None:
        self.dead = dead

    def runs(self) -> str:
        return "?"

    def require_alive(self) -> None:
        if self.dead:
            raise Problem(f"{self.dead} has died: see its log")


class Quiet:
    """A screen that keeps what is said."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def show(self, facts: dict[str, str]) -> None:
        """Nothing."""

    def say(self, text: str) -> None:
        """Keep it."""
        self.said.append(text)


def test_gives_up_only_when_nothing_has_changed_for_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A real feeder on a lake in which nobody works: it says so, and gives up by the time without a change."""
    monkeypatch.setattr("demo.__main__.POLL", 0.01)
    demo, clock, screen = Demo(tmp_path, 1, 1, Store("lake", tmp_path / "lake")), Clock(), Quiet()

    def tick() -> float:
        clock.now += 5
        return clock.now

    demo._progress = Progress(tick)
    with pytest.raises(Problem, match=r"no table has changed for 15 minutes: \d+ clicks have no outcome, .*/logs"):
        demo.run(Servers(), screen)
    assert len(screen.said) > 5
    assert all(text.startswith("nothing new for") for text in screen.said)


def test_a_server_that_has_died_is_not_waited_for(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="Spark Connect has died"):
        Demo(tmp_path, 1, 1, Store("lake", tmp_path / "lake")).run(Servers("Spark Connect"), Quiet())


def test_the_click_to_look_at(lake: Lake, tmp_path: Path) -> None:
    assert telling_click(lake, ENTRIES) == ("c2", "a click that has no outcome yet")
    finish(lake)
    late = (*ENTRIES, Entry("impressions", "i2", "held", 1))
    assert telling_click(lake, late) == ("c2", "a click that waited for its impression")
    assert telling_click(lake, ()) == ("c0", "a click that was joined")
    assert telling_click(Lake(tmp_path / "none"), ()) == ("", "")


def test_commands_to_paste(lake: Lake, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    finish(lake)
    monkeypatch.chdir(tmp_path)
    lines = next_steps(lake, ENTRIES, tmp_path / "pipelines/zozo.yaml")
    assert lines[1] == "  export CLICKJOIN_CONFIG=pipelines/zozo.yaml"
    commands = [line.partition("#")[0].strip().removeprefix(".venv/bin/clickjoin ") for line in lines[2:-2]]
    assert commands == ["status", "explain c2", "unjoinable", "quarantine"]
    assert "clickjoin init --config shop.yaml --from-logs" in lines[-2]
    assert "KEEP=1" in lines[-1]
    assert next_steps(lake, ENTRIES, tmp_path / "p.yaml", "Airflow is up")[-1] == "Airflow is up"


def test_where_the_tables_are_once_a_server_has_gone(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(lake.folder.parent)
    s3 = Store("s3://lake", lake.folder, put=lambda key, data: None)
    kafka = Store("lake", lake.folder, servers="127.0.0.1:1")
    assert Store("lake", lake.folder).server is None
    for store, server, page in ((s3, "S3 server", "docs/s3.md"), (kafka, "broker", "docs/kafka.md")):
        assert store.server == (server, page)
        first, second = ended(lake, *store.server)
        assert server in first
        assert lake.folder.name in first
        assert (Path(__file__).parents[2] / page).exists()
        assert second.startswith(page)
