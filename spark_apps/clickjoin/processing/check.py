"""Whether each event of the output was counted once, and each signal is there once: sums against what lies there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from clickjoin.lake.delta_reader import DeltaReader
from clickjoin.model.outputs import JOINED
from clickjoin.processing.processing import Processing
from clickjoin.processing.state_rows import load
from clickjoin.sources.delta.state import newest

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.sources.delta.state import TablePosition

_REBUILD = "`clickjoin process --rebuild` begins again from the whole output"


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
    """Compare the sums of all settled batches with the output and the tables. Errors: LakeError."""
    made = Processing(pipeline)
    while made.planner.unsettled():
        made.once()
    state = made.planner.journal.load()
    last = load(made.tables).last
    rows, notes = _rows(pipeline, newest(state.offsets.get("output", {})))
    signals, late = made.tables.rows("signals"), made.tables.rows("late")
    faults = list(_faults(rows, last.all_events + last.all_late, (signals, last.all_signals), (late, last.all_late)))
    twice = signals - pc.count_distinct(made.tables.read("signals", columns=["id"])["id"]).as_py() if signals else 0
    if twice:
        faults.append(f"{twice} rows of `signals` have an id that another has; {_REBUILD}")
    if rows is not None and rows < last.all_events + last.all_late:
        gone = last.all_events + last.all_late - rows
        notes += (f"{gone} events were counted whose rows have left the output since (forgotten, or taken out)",)
    return Checked(rows or 0, last.all_events, last.all_late, signals, tuple(faults), notes)


def _rows(pipeline: Pipeline, at: TablePosition | None) -> tuple[int | None, tuple[str, ...]]:
    """Rows of the output at the version that was read to its end; None where that cannot be known now."""
    if at is None:
        return 0, ()
    if at.row or at.whole:
        return None, (f"version {at.version} of the output is not read to its end yet: its rows were not counted",)
    rows = DeltaReader(pipeline.root).rows_at(JOINED, at.read)
    if rows is None:
        return None, (f"version {at.read} of the output cannot be read any more: its rows were not counted",)
    return rows, ()


def _faults(rows: int | None, counted: int, signals: tuple[int, int], late: tuple[int, int]) -> Iterator[str]:
    if rows is not None and rows > counted:
        yield f"{rows - counted} of {rows} rows of the output were never counted; {_REBUILD}"
    for name, (there, wanted) in (("signals", signals), ("late", late)):
        if there != wanted:
            yield f"`{name}` holds {there} rows, and batches have committed {wanted}; {_REBUILD}"
