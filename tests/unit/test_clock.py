"""The lake's clock: what it says where a process's own is wrong, and what is refused then."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from clickjoin.lake import clock
from clickjoin.lake.clock import LakeClock, Reading, careful_now
from clickjoin.lake.location import LocalFolder
from clickjoin.model.errors import ClockError

DAYS = 2 * 86400.0


@pytest.fixture(params=[DAYS, -DAYS])
def off(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> float:
    """This process's clock is two days ahead, or behind."""
    real, off = time.time, float(request.param)
    monkeypatch.setattr(clock.time, "time", lambda: real() + off)
    return off


def real() -> float:
    """The machine's time, whatever a test does to time.time."""
    return time.clock_gettime(time.CLOCK_REALTIME)


def test_clocks_that_agree(tmp_path: Path) -> None:
    found = clock.read(str(tmp_path))
    assert abs(found.apart) < 1
    assert abs(found.lake - real()) < 5
    found.require(60)


def test_a_slow_store_is_no_difference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file got its time some seconds before the answer came."""
    write = LocalFolder.write

    def slow(self: LocalFolder, path: str, data: bytes) -> None:
        write(self, path, data)
        monkeypatch.setattr(clock.time, "time", lambda: real() + 30)

    monkeypatch.setattr(LocalFolder, "write", slow)
    assert abs(clock.read(str(tmp_path)).apart) < 1


def test_a_clock_that_is_off_is_seen_and_named(tmp_path: Path, off: float) -> None:
    found = clock.read(str(tmp_path))
    assert abs(found.apart - off) < 5
    wrong, right = (f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M}" for at in (found.process, found.lake))
    with pytest.raises(
        ClockError, match=rf"(?s){wrong}.*{right}.*{tmp_path}.*1728\d\d s apart.*Set the wrong clock"
    ) as error:
        found.require(300)
    assert not error.value.retryable


def test_what_is_old_is_old_by_both(tmp_path: Path, off: float) -> None:
    now = careful_now(str(tmp_path)).timestamp()
    assert abs(now - (real() + min(off, 0))) < 5


def test_a_lake_that_may_not_be_written_to(tmp_path: Path) -> None:
    assert abs(careful_now(str(tmp_path / "none")).timestamp() - real()) < 5
    with pytest.raises(OSError, match="none"):
        clock.read(str(tmp_path / "none"))


def test_the_lakes_clock_goes_on_whatever_the_process_says(tmp_path: Path, off: float) -> None:
    now = LakeClock(str(tmp_path))
    first = now()
    assert abs(first - real()) < 5
    time.sleep(0.02)
    assert 0.01 < now() - first < 1


def test_it_measures_once_a_minute_and_after_a_jump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    process, steady, looks = [1000.0], [50.0], []

    def read(root: str) -> Reading:
        looks.append(root)
        return Reading(root, process[0], 7000.0 + len(looks))

    monkeypatch.setattr(clock, "read", read)
    monkeypatch.setattr(clock.time, "time", lambda: process[0])
    monkeypatch.setattr(clock.time, "monotonic", lambda: steady[0])
    now = LakeClock(str(tmp_path))

    def after(seconds: float, jump: float = 0) -> float:
        steady[0] += seconds
        process[0] += seconds + jump
        return now()

    assert [after(0), after(59), after(2), after(1), after(1, DAYS), after(1)] == [7001, 7060, 7002, 7003, 7003, 7004]
    assert len(looks) == 3


def test_the_file_is_one_and_stays(tmp_path: Path) -> None:
    for _ in range(3):
        clock.read(str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == [clock.PROBE]
