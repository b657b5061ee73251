"""What a batch works out of its events: pure, so that another copy of it works out the same."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from traceback import extract_tb
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.model.errors import ConfigError, ProcessorError
from clickjoin.processors.port import SIGNALS as SAID
from clickjoin.processors.port import Work
from clickjoin.schemas.arrow import arrow_schema
from clickjoin.schemas.process import SIGNALS

if TYPE_CHECKING:
    import numpy.typing as npt

    from clickjoin.processing.events import Events
    from clickjoin.processing.held import Held
    from clickjoin.processors.port import Done, Processor

_DAY = 86_400_000_000
_NAMED = "Give each signal a kind, and a window_start that no other of its key and kind has (docs/processing.md)"


@dataclass(frozen=True)
class Times:
    """Watermarks of the batch before and of this one, and how far behind an event still corrects; microseconds."""

    passed: int
    watermark: int
    lateness: int


@dataclass(frozen=True)
class Sorted:
    """Numbers of the events that are processed, and of those for table `late` (to the reason); both ascending.

    `corrects`: how many are both.
    """

    taken: npt.NDArray[np.int64]
    aside: dict[int, str]
    corrects: int


def sort_out(events: Events, times: Times) -> Sorted:
    """Tell events behind the watermark that was passed, and those without a key, from the others."""
    nameless = np.asarray(pc.is_null(events.keys)) if len(events) else np.zeros(0, bool)
    late = events.times < times.passed
    corrects = late & ~nameless & (events.times >= times.passed - times.lateness)
    aside = {
        int(at): "no-key" if nameless[at] else "corrected" if corrects[at] else "late"
        for at in np.flatnonzero(nameless | late)
    }
    return Sorted(np.flatnonzero(~(nameless | late) | corrects), aside, int(corrects.sum()))


@dataclass(frozen=True)
class Result:
    """What came of a batch: keys in order, what the processor did with them, and its signals as rows of the table.

    `places`: where the keys' state was held before.
    """

    keys: list[str]
    places: npt.NDArray[np.int64]
    done: Done
    signals: pa.Table


def began_of(known: int, times: Any) -> int:
    """The first day of all events, in microseconds; `known`: as of the batch before."""
    return min(known, int(times.min()) // _DAY * _DAY) if len(times) else known


def process(
    processor: Processor,
    held: Held,
    events: Events,
    taken: Any,
    times: Times,
    began: int,
    reported: tuple[datetime, int],
) -> Result:
    """Give keys with events, and those whose timer is passed, to the processor. `reported`: when, by which batch."""
    named, at = _looked_at(events.keys.take(pa.array(taken)), held.due(times.watermark))
    micros = events.times[taken]
    order = np.lexsort((micros, at))
    keys = named.to_pylist()
    places = held.places(keys)
    state, known = held.get(places)
    work = Work(named, state, known, at[order], micros[order], times.watermark, began, times.passed, times.lateness)
    done = _done(processor, work, reported[1])
    return Result(keys, places, done, signal_rows(type(processor).__name__, named, done.signals, *reported))


def _done(processor: Processor, work: Work, batch: int) -> Done:
    try:
        return processor.process(work)
    except Exception as error:
        name = type(processor).__name__
        raise ProcessorError(
            f"{name}, batch {batch} of {len(work.keys):,} keys: {_why(error)}",
            remedy="Fix it, and run this again: nothing of the batch was committed",
        ) from error


def _why(error: Exception) -> str:
    """What was raised, the line that raised it, and what was noted of it, such as the key."""
    line = extract_tb(error.__traceback__)[-1]
    raised = f"{type(error).__name__}: {str(error)[:500]} ({line.filename}:{line.lineno})"
    return ", ".join([raised, *getattr(error, "__notes__", [])])


def _looked_at(names: Any, due: list[str]) -> tuple[Any, npt.NDArray[np.int64]]:
    """The keys of events and those that are due, each once and in order; of each event, the number of its key."""
    numbered = pa.concat_arrays([names.cast(pa.string()), pa.array(due, pa.string())]).dictionary_encode()
    order = np.asarray(pc.array_sort_indices(numbered.dictionary), np.int64)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return numbered.dictionary.take(pa.array(order)), rank[np.asarray(numbered.indices)[: len(names)]]


def _require_named(processor: str, said: pa.Table, owners: pa.Array) -> None:
    """Errors: ConfigError for a signal whose row would have no id of its own."""
    for name in ("kind", "window_start"):
        if said[name].null_count:
            key = owners.filter(said[name].combine_chunks().is_null())[0]
            raise ConfigError(f"{processor} reports a signal of key {key} without {name}", remedy=_NAMED)


def _require_once(processor: str, names: pa.ChunkedArray) -> None:
    found = pc.value_counts(names)
    twice = found.field("values").filter(pc.greater(found.field("counts"), 1))
    if len(twice):
        raise ConfigError(f"{processor} reports {twice[0]} twice in a batch", remedy=_NAMED)


def signal_rows(processor: str, keys: pa.Array, said: pa.Table, at: datetime, batch: int) -> pa.Table:
    """Rows of table `signals`. Columns in: as processors.port.SIGNALS."""
    said = said.select(SAID.names)
    owners = keys.take(said["of"])
    _require_named(processor, said, owners)
    micros = pa.timestamp("us", tz="UTC")
    begins = said["window_start"].cast(micros)
    stamp = pc.cast(begins.cast(pa.timestamp("us")), pa.string())
    revision, retracted = said["revision"].fill_null(0), said["retracted"].fill_null(False)
    # Which of several rows of a window it is, before the key: whatever that holds, no other id is the same.
    nth = pc.binary_join_element_wise("#", revision.cast(pa.string()), pc.if_else(retracted, "-", ""), "")
    stamp = pc.if_else(pc.or_(pc.greater(revision, 0), retracted), pc.binary_join_element_wise(stamp, nth, ""), stamp)
    names = pc.binary_join_element_wise(processor, said["kind"], stamp, owners, "/")
    _require_once(processor, names)
    columns = {name: said[name] for name in ("kind", "count", "expected", "low", "high", "score")} | {
        "id": names, "key": owners, "window_start": begins, "window_end": said["window_end"].cast(micros),
        "revision": revision, "retracted": retracted,
        "reported_at": pa.array([at] * said.num_rows, micros), "batch": pa.array(np.full(said.num_rows, batch)),
    }  # fmt: skip
    schema = arrow_schema(SIGNALS)
    return pa.table({name: columns[name] for name in schema.names}).cast(schema)
