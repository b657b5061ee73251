"""Table `dates`: what became of each date, which of them have changed since, and who works on one now.

A date is held by rows of that table of state `held`: from `at` on, for so many `seconds`, by the hold that `run` names.
One comes by a compare-and-set, so that one of two takes the date. A thread puts the end off by another row while work
goes on, and all of them go at its end: a process that is killed leaves the date free soon.
"""

from __future__ import annotations

import logging
import re
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from clickjoin.engines.tables_port import Tables
from clickjoin.kernel.data_skipping import paths, rows, within
from clickjoin.lake.delta_reader import DeltaReader
from clickjoin.model.errors import ClickjoinError, DateBusy, DateError
from clickjoin.model.extent import Extent, text, timestamp
from clickjoin.model.ids import MICROS, moment
from clickjoin.model.span import Day
from clickjoin.schemas import DATES

if TYPE_CHECKING:
    import pyarrow as pa

    from clickjoin.config import Pipeline

_log = logging.getLogger(__name__)
_TRIES = 20
_HELD = "held"
_NAMED = 5
_GIVEN = re.compile(r"backfill-\d{8}T\d{6}")  # it may have been killed before it had finished its first date


def newest(delta: DeltaReader) -> dict[date, dict[str, Any]]:
    """The state of every date that has one: its newest row of table `dates`."""
    found: dict[date, dict[str, Any]] = {}
    for row in delta.read("dates", [("state", "!=", _HELD)]).to_pylist():
        old = found.get(row["date"])
        if old is None or row["at"] >= old["at"]:
            found[row["date"]] = row
    return found


def last_closed(delta: Tables, day: Day) -> dict[str, Any] | None:
    """The newest row of a date that says closed."""
    rows = delta.read("dates", [("date", "=", day.date), ("state", "=", "closed")]).to_pylist()
    return max(rows, key=lambda row: row["at"], default=None)


def require_run(delta: Tables, run: str) -> None:
    """Check that a run has finished some date, or has a name that runs get. Errors: DateError, which names the last."""
    rows = sorted(delta.read("dates", [("state", "!=", _HELD)]).to_pylist(), key=lambda row: row["at"])
    known = list(dict.fromkeys(str(row["run"]) for row in rows))
    if run not in known and not _GIVEN.fullmatch(run):
        last = f"; the last ones that have: {', '.join(known[-_NAMED:])}" if known else ""
        raise DateError(
            f"run {run} has finished no date{last}", remedy="Name one that has, or leave --run out and start again"
        )


@contextmanager
def held(tables: Tables, day: Day, seconds: float, clock: Callable[[], float]) -> Iterator[None]:
    """Keep a date for this run alone, and for so long after it where it is killed. Errors: DateBusy.

    `clock`: one that all who take dates share, the lake's.
    """
    delta, stop = tables.copy(), threading.Event()
    hold, over = _take(delta, day, seconds, clock)
    keeper = threading.Thread(target=_keep, args=(tables.copy(), day, hold, seconds, clock, stop), daemon=True)
    keeper.start()
    try:
        yield
    finally:
        stop.set()
        keeper.join()
        _end(delta, day, [hold, *over])


def _take(delta: Tables, day: Day, seconds: float, clock: Callable[[], float]) -> tuple[str, list[str]]:
    """Take a date; returns the name of the hold, and those of runs that were killed: they are over."""
    for _ in range(_TRIES):
        version, now = delta.version("dates"), moment(int(clock() * MICROS))
        known = _holds(delta, day)
        until = max((row["at"] + timedelta(seconds=row["seconds"]) for row in known.values()), default=now)
        if until > now:
            raise DateBusy(
                f"{day}: another run works on this date (it says so until {until:%H:%M:%S} UTC, and again if it is "
                "still there then)",
                remedy=f"Wait for it; the date is free {seconds:.0f} s after a run that was killed (close.lease)",
            )
        hold = uuid.uuid4().hex
        seen = " OR ".join(f"(t.run = {text(run)} AND t.at <= {timestamp(row['at'])})" for run, row in known.items())
        others = f"t.date = DATE '{day}' AND t.state = '{_HELD}' AND NOT ({seen or 'FALSE'})"
        if delta.append_next("dates", version, _row(day, hold, now, seconds), others):
            return hold, sorted(known)
    raise DateBusy(f"{day}: table `dates` changes too often to take this date", remedy="Try again in a minute")


def _holds(delta: DeltaReader, day: Day) -> dict[str, dict[str, Any]]:
    """The newest row of each hold of a date, by the hold's name."""
    rows = delta.read("dates", [("date", "=", day.date), ("state", "=", _HELD)]).to_pylist()
    return {row["run"]: row for row in sorted(rows, key=lambda row: row["at"])}


def _keep(
    delta: Tables, day: Day, hold: str, seconds: float, clock: Callable[[], float], stop: threading.Event
) -> None:
    while not stop.wait(seconds / 4):
        try:
            delta.append("dates", [_row(day, hold, moment(int(clock() * MICROS)), seconds)])
        except ClickjoinError as error:  # the next try comes before the hold ends
            _log.warning("%s: its hold was not put off: %s", day, error)


def _end(delta: Tables, day: Day, holds: Sequence[str]) -> None:
    """Take holds away, by name: where this run was paused for long, another may hold the date by now."""
    names = ", ".join(text(name) for name in holds)
    try:
        delta.delete("dates", f"state = '{_HELD}' AND run IN ({names})")
    except ClickjoinError as error:  # what was done on the date is done
        _log.warning("%s: it stays held until close.lease is over: %s", day, error)


def _row(day: Day, hold: str, at: datetime, seconds: float) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(DATES.names)
    return row | {"date": day.date, "at": at, "run": hold, "action": "hold", "state": _HELD, "seconds": seconds}


def changed(pipeline: Pipeline, delta: DeltaReader, now: datetime) -> list[str]:
    """Dates within close.late_window whose newest row says closed, and whose output has changed since; oldest first."""
    oldest, actions = now - timedelta(seconds=pipeline.close.late_window), delta.files("joined")
    found = []
    for closed, row in sorted(newest(delta).items()):
        day = Day(closed)
        if row["state"] != "closed" or day.high < oldest:
            continue
        if _differs(delta, actions, row, day.span.extent(int(pipeline.registry.bucket))):
            found.append(str(day))
    return found


def _differs(delta: DeltaReader, actions: pa.Table, row: Mapping[str, Any], extent: Extent) -> bool:
    """Whether a date's files are others than when it was closed: as many rows may be other ones.

    Where files were merely rewritten, closing finds the same fingerprint, and announces nothing.
    """
    now = within(actions, extent)
    if rows(now) != int(row["fingerprint"].partition(":")[0]):
        return True
    then = delta.files_if_kept("joined", row["version"])  # else what came last was seen long ago
    return then is not None and set(paths(now)) != set(paths(within(then, extent)))
