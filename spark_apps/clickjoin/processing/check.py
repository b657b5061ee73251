"""Whether each event of the output was counted once, and each signal is there once: sums against what lies there."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from clickjoin.dispatcher.journal import JournalReader, JournalState
from clickjoin.lake.delta_reader import DeltaReader
from clickjoin.model.errors import LakeError
from clickjoin.model.places import JOINED
from clickjoin.processing.planning import REPLICA, SEQUENCE, STREAM
from clickjoin.processing.state_rows import Committed, committed
from clickjoin.processing.tables import folder
from clickjoin.sources.delta.state import newest

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.sources.delta.state import TablePosition

_REBUILD = "`clickjoin process --rebuild` begins again from the whole output"
_LOOKS, _PAUSE = 20, 0.5


@dataclass(frozen=True)
class Checked:
    """Rows of the output that have been read, and what became of them; `faults` and `notes` in sentences."""

    rows: int
    events: int
    late: int
    signals: int
    faults: tuple[str, ...]
    notes: tuple[str, ...]


def check(pipeline: Pipeline) -> Checked:
    """Compare the sums of all settled batches with the output and the tables, beside anyone who works.

    Errors: LakeError where table `state` lacks the newest settled batch.
    """
    tables = DeltaReader(folder(pipeline))
    state, last = _settled(tables, JournalReader(tables, pipeline.pipeline, REPLICA, SEQUENCE))
    # What comes after that batch is not counted: each row says which it is of.
    upto = [("batch", "<=", last.number)]
    ids, reasons = tables.read("signals", upto, ["id"])["id"], tables.read("late", upto, ["reason"])["reason"]
    late = len(reasons)
    rows, notes = _rows(pipeline, state, newest(state.offsets.get(STREAM, {})))
    counted, twice = last.all_events + last.all_late, len(ids) - pc.count_distinct(ids).as_py()
    faults = list(_faults(rows, counted, (len(ids), last.all_signals), (late, last.all_late)))
    if twice:
        faults.append(
            f"{twice} rows of `signals` have an id that another has: a processor of your own reports one window twice; "
            f"correct it, then {_REBUILD}"
        )
    if rows is not None and rows < counted:
        gone = f"{counted - rows} events were counted whose rows have left the output since"
        notes += (f"{gone} (forgotten, or taken out)",)
    notes += _keyless(pipeline, pc.sum(pc.equal(reasons, "no-key")).as_py() or 0, last.all_events)
    return Checked(rows or 0, last.all_events, last.all_late, len(ids), tuple(faults), notes)


def _keyless(pipeline: Pipeline, keyless: int, events: int) -> tuple[str, ...]:
    """What is said of events without a key: where no event has one, the path is likely to be misspelt."""
    if not keyless:
        return ()
    key = ", ".join(pipeline.process.key) if pipeline.process else ""
    hint = "" if events else f"; check its spelling, then {_REBUILD}"
    return (f"{keyless} events have no {key}, and are in `late` as no-key{hint}",)


def _settled(tables: DeltaReader, journal: JournalReader) -> tuple[JournalState, Committed]:
    """The journal, and what its newest settled batch has fixed; between two batches, where that can be had."""
    found: tuple[JournalState, Committed] | None = None
    for _ in range(_LOOKS):
        state = journal.load()
        if last := committed(tables, state.last - bool(state.unsettled)):
            found = state, last
            if not state.unsettled:
                break
        time.sleep(_PAUSE)
    if found is None:
        raise LakeError(
            f"{tables.path('state')}: has no row of the newest settled batch",
            remedy="Put its newest copy back, or run `clickjoin process --rebuild`",
        )
    return found


def _rows(pipeline: Pipeline, state: JournalState, at: TablePosition | None) -> tuple[int | None, tuple[str, ...]]:
    """Rows of the output at the version that was read to its end; None where that cannot be known now."""
    if at is None:
        return 0, ()
    unknown = "its rows were not counted"
    if state.unsettled:
        return None, (f"batch {state.last} is under way, or was cut short: the output is read up to there; {unknown}",)
    if at.row or at.whole:
        return None, (f"version {at.version} of the output is not read to its end yet: {unknown}",)
    rows = DeltaReader(pipeline.root).rows_at(JOINED, at.read)
    if rows is None:
        return None, (f"version {at.read} of the output cannot be read any more: {unknown}",)
    return rows, ()


def _faults(rows: int | None, counted: int, signals: tuple[int, int], late: tuple[int, int]) -> Iterator[str]:
    if rows is not None and rows > counted:
        yield f"{rows - counted} of {rows} rows of the output were never counted; {_REBUILD}"
    for name, (there, wanted) in (("signals", signals), ("late", late)):
        if there != wanted:
            yield f"`{name}` holds {there} rows, and batches have committed {wanted}; {_REBUILD}"
