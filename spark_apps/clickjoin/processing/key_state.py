"""What the tables of the processing hold of one key: its state as the processor reads it, and its late events."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from clickjoin.dispatcher.journal import JournalReader
from clickjoin.lake.delta_reader import DeltaReader
from clickjoin.lake.readable import ReadableTables
from clickjoin.processing.planning import REPLICA, SEQUENCE, STREAM
from clickjoin.processing.tables import folder
from clickjoin.processors.port import NEVER
from clickjoin.schemas.process import BATCH, KEYS

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.processors.port import Outlook, Processor

_OF_KEY = ("batch", "timer", "gone")


@dataclass(frozen=True)
class KeyState:
    """One key: whether it has state, when it is looked at without an event (microseconds; 0: not), the watermark that
    was passed (0: none), what its processor says of it, and its late events, newest first.
    """

    has_state: bool = False
    timer: int = 0
    watermark: int = 0
    outlook: Outlook | None = None
    late: list[dict[str, Any]] = field(default_factory=list)


def key_state_of(pipeline: Pipeline, key: str, processor: Processor | None) -> KeyState:
    """How a key stands. `processor`: None where its state is not to be read. Errors: LakeError."""
    tables = ReadableTables(folder(pipeline))
    mark = JournalReader(tables, pipeline.pipeline, REPLICA, SEQUENCE).load().passed.get(STREAM, 0)
    late = tables.read("late", [("key", "=", key)]).sort_by([("event_time", "descending")]).to_pylist()
    era = max(tables.files("state")["partition.era"].to_pylist(), default=0) if tables.rows("state") else 0
    own = list(processor.state.names) if processor else []
    rows = tables.read("state", [("era", "=", era), ("what", "=", KEYS), ("key", "=", key)], [*_OF_KEY, *own])
    rows = rows.sort_by([("batch", "descending")]).slice(0, 1)
    if not rows.num_rows or rows["gone"][0].as_py():
        return KeyState(watermark=mark, late=late)
    timer = rows["timer"][0].as_py()
    outlook = _outlook(tables, era, rows, processor, mark) if processor else None
    return KeyState(True, 0 if timer == NEVER else timer, mark, outlook, late)


def _outlook(tables: DeltaReader, era: int, row: pa.Table, processor: Processor, mark: int) -> Outlook | None:
    batches = tables.read("state", [("era", "=", era), ("what", "=", BATCH)], ["batch", "began"])
    began = batches.sort_by([("batch", "descending")])["began"][0].as_py()
    return processor.outlook(row.select(processor.state.names), mark, began)
