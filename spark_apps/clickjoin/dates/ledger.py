"""Table `dates`: what became of each date, which of them have changed since, and who works on one now.

A date is held by a transaction of that table whose number is the moment (microseconds) that the hold ends at; it is
committed as the very next version, so that one of two takes it. A thread puts the end off while work goes on: a
process that is killed leaves the date free soon.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from clickjoin.kernel.data_skipping import rows_in
from clickjoin.lake import DeltaTables
from clickjoin.lake.delta_reader import DeltaReader
from clickjoin.model.errors import DateBusy, DateError
from clickjoin.model.ids import MICROS, moment
from clickjoin.model.span import Day
from clickjoin.model.txn import Txn

if TYPE_CHECKING:
    from clickjoin.config import Pipeline

_TRIES = 20
_NAMED = 5
_GIVEN = re.compile(r"backfill-\d{8}T\d{6}")  # it may have been killed before it had finished its first date


def newest(delta: DeltaReader) -> dict[date, dict[str, Any]]:
    """The state of every date that has one: its newest row of table `dates`."""
    found: dict[date, dict[str, Any]] = {}
    for row in delta.read("dates").to_pylist():
        old = found.get(row["date"])
        if old is None or row["at"] >= old["at"]:
            found[row["date"]] = row
    return found


def last_closed(delta: DeltaTables, day: Day) -> dict[str, Any] | None:
    """The newest row of a date that says closed."""
    rows = delta.read("dates", [("date", "=", day.date), ("state", "=", "closed")]).to_pylist()
    return max(rows, key=lambda row: row["at"], default=None)


def require_run(delta: DeltaTables, run: str) -> None:
    """Check that a run has finished some date, or has a name that runs get. Errors: DateError, which names the last."""
    rows = sorted(delta.read("dates").to_pylist(), key=lambda row: row["at"])
    known = list(dict.fromkeys(str(row["run"]) for row in rows))
    if run not in known and not _GIVEN.fullmatch(run):
        last = f"; the last ones that have: {', '.join(known[-_NAMED:])}" if known else ""
        raise DateError(
            f"run {run} has finished no date{last}", remedy="Name one that has, or leave --run out and start again"
        )


@contextmanager
def held(root: str, day: Day, seconds: float, clock: Callable[[], float]) -> Iterator[None]:
    """Keep a date for this run alone, and for so long after it where it is killed. Errors: DateBusy.

    `clock`: one that all who take dates share, the lake's.
    """
    delta, stop = DeltaTables(root), threading.Event()
    _take(delta, day, seconds, clock)
    keeper = threading.Thread(target=_keep, args=(root, day, seconds, clock, stop), daemon=True)
    keeper.start()
    try:
        yield
    finally:
        stop.set()
        keeper.join()
        _put(delta, day, clock())


def _take(delta: DeltaTables, day: Day, seconds: float, clock: Callable[[], float]) -> None:
    for _ in range(_TRIES):
        version, now = delta.version("dates"), clock()
        until = delta.latest_txn_version("dates", _app(day))
        if until > now * MICROS:
            raise DateBusy(
                f"{day}: another run works on this date (it says so until {moment(until):%H:%M:%S} UTC, and again if "
                "it is still there then)",
                remedy=f"Wait for it; the date is free {seconds:.0f} s after a run that was killed (close.lease)",
            )
        if delta.commit_next("dates", version, Txn(_app(day), int((now + seconds) * MICROS))):
            return
    raise DateBusy(f"{day}: table `dates` changes too often to take this date", remedy="Try again in a minute")


def _keep(root: str, day: Day, seconds: float, clock: Callable[[], float], stop: threading.Event) -> None:
    delta = DeltaTables(root)
    while not stop.wait(seconds / 4):
        _put(delta, day, clock() + seconds)


def _put(delta: DeltaTables, day: Day, until: float) -> None:
    for _ in range(_TRIES):
        if delta.commit_next("dates", delta.version("dates"), Txn(_app(day), int(until * MICROS))):
            return


def _app(day: Day) -> str:
    return f"hold/{day}"


def changed(pipeline: Pipeline, delta: DeltaReader, now: datetime) -> list[str]:
    """Dates within close.late_window whose newest row says closed, and whose output has changed since; oldest first."""
    oldest, actions = now - timedelta(seconds=pipeline.close.late_window), delta.files("joined")
    found = []
    for closed, row in sorted(newest(delta).items()):
        day = Day(closed)
        if row["state"] != "closed" or day.high < oldest:
            continue
        extent = day.span.extent(int(pipeline.registry.bucket))
        if rows_in(actions, extent) != int(row["fingerprint"].partition(":")[0]):
            found.append(str(day))
    return found
