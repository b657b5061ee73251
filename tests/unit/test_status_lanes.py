"""Lanes: what hangs holds up its own pipeline alone, costs one thread, and is said in time."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from clickjoin_airflow.status.lanes import Busy, Lanes

PATIENCE = 0.3


class Disk:
    """A file whose reading hangs until the disk is well again: a pipe that nobody writes to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        os.mkfifo(path)

    def read(self) -> str:
        return self.path.read_text()

    def heal(self) -> None:
        """Let whoever reads now have an answer."""
        handle = os.open(self.path, os.O_RDWR)
        os.write(handle, b"well")
        os.close(handle)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    made = Disk(tmp_path / "pipe")
    yield made
    made.heal()


POOLS = ("clickjoin-checkpoints", "clickjoin-requests", "clickjoin-ahead")


def threads() -> list[str]:
    """Of lanes; pools of tables that another test has used stay."""
    names = (thread.name for thread in threading.enumerate())
    return sorted(name for name in names if name.startswith("clickjoin-") and not name.startswith(POOLS))


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


async def outcome(lanes: Lanes, lane: str, read: Callable[[], object]) -> str:
    try:
        return str(await lanes.run(lane, lane, read))
    except Busy as error:
        return str(error).partition(". ")[0]


def test_what_hangs_holds_up_no_other(disk: Disk) -> None:
    async def ask() -> tuple[list[str], float, str]:
        lanes, begun = Lanes(PATIENCE, queue=2), time.monotonic()
        sick = asyncio.gather(*(outcome(lanes, "sick", disk.read) for _ in range(20)))
        well = await outcome(lanes, "well", lambda: "read")
        quick = time.monotonic() - begun
        heard, last = await sick, ""
        for _ in range(100):  # on a loaded machine its thread begins late
            last = await outcome(lanes, "sick", disk.read)
            if "has been read for" in last:
                break
        return heard, quick, well + "|" + last

    sick, quick, well = asyncio.run(ask())
    assert quick < PATIENCE
    assert well.startswith("read|sick: has been read for ")
    assert sick.count("sick: no answer within 0.3 s") in (2, 3)  # one is read, two wait
    assert sick.count("sick: 2 requests wait already") == 20 - sick.count("sick: no answer within 0.3 s")
    assert threads() == ["clickjoin-sick"]


def test_it_goes_on_when_the_disk_is_well_and_asks_for_nobody_who_has_gone(disk: Disk) -> None:
    lanes, asked = Lanes(PATIENCE), []

    async def ask() -> list[str]:
        first = outcome(lanes, "a", disk.read)
        return list(await asyncio.gather(first, *(outcome(lanes, "a", lambda: asked.append(1)) for _ in range(3))))

    assert set(asyncio.run(ask())) == {"a: no answer within 0.3 s"}
    until(lambda: threads() == ["clickjoin-a"])
    while threads():
        disk.heal()
        time.sleep(0.01)
    assert asked == []
    assert asyncio.run(outcome(lanes, "a", lambda: "again")) == "again"


def test_disks_that_hang_take_so_many_threads_and_no_more(disk: Disk) -> None:
    async def ask() -> list[str]:
        lanes = Lanes(PATIENCE, most=3)
        found = await asyncio.gather(*(outcome(lanes, str(lane), disk.read) for lane in range(10)))
        assert len(threads()) == 3
        return list(found)

    assert sum("3 other reads are under way" in one for one in asyncio.run(ask())) == 7
    while threads():
        disk.heal()
        time.sleep(0.01)


def test_errors_are_those_of_the_read() -> None:
    def fail() -> None:
        raise TimeoutError("NFS server not responding")

    for error, read in ((ZeroDivisionError, lambda: 1 // 0), (TimeoutError, fail)):
        with pytest.raises(error):
            asyncio.run(Lanes(PATIENCE).run("a", "a", read))
    until(lambda: not threads())
