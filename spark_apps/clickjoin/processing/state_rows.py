"""Rows of table `state`: what a batch commits, and what a process reads of them when it begins."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.processing.held import Held
from clickjoin.processing.tables import own_columns
from clickjoin.processors.port import NEVER
from clickjoin.schemas.arrow import arrow_schema
from clickjoin.schemas.process import BATCH, KEYS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from clickjoin.engines.tables_port import Tables
    from clickjoin.lake.delta_reader import DeltaReader

_COUNTS = ("began", "events", "late", "known", "looked", "newest", "all_events", "all_late", "all_signals")


@dataclass(frozen=True)
class Committed:
    """What a batch has fixed beside the state of keys. Times in microseconds; `began` is NEVER, `newest` 0 of none."""

    number: int
    outbox: pa.Table | None = None
    began: int = NEVER
    events: int = 0
    late: int = 0
    known: int = 0
    looked: int = 0
    newest: int = 0
    all_events: int = 0
    all_late: int = 0
    all_signals: int = 0

    def after(self, before: Committed) -> Committed:
        """The same with what all batches before have done."""
        signals = self.outbox.num_rows if self.outbox else 0
        return replace(
            self,
            all_events=before.all_events + self.events,
            all_late=before.all_late + self.late,
            all_signals=before.all_signals + signals,
        )

    def row(self, era: int) -> dict[str, Any]:
        """As a row of `state`."""
        counts = {name: getattr(self, name) for name in _COUNTS}
        return {"era": era, "what": BATCH, "batch": self.number, "outbox": _packed(self.outbox), **counts}


def _packed(signals: pa.Table | None) -> bytes | None:
    if signals is None or not signals.num_rows:
        return None
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, signals.schema) as writer:
        writer.write_table(signals)
    return bytes(sink.getvalue())


@dataclass
class Loaded:
    """State of all keys as of a batch, the era that its rows lie in, and how many rows that has."""

    held: Held
    last: Committed
    era: int = 0
    rows: int = 0


def key_rows(
    tables: Tables, era: int, number: int, keys: Sequence[str], state: pa.Table,
    timers: npt.NDArray[np.int64], gone: npt.NDArray[np.bool_],
) -> pa.Table:  # fmt: skip
    """Rows of keys, columns as table `state`."""
    schema, count = arrow_schema(tables.table("state")), len(keys)
    given: dict[str, Any] = {
        "era": pa.repeat(pa.scalar(era, pa.int64()), count),
        "what": pa.repeat(pa.scalar(KEYS), count),
        "batch": pa.repeat(pa.scalar(number, pa.int64()), count),
        "key": pa.array(keys, pa.string()),
        "timer": pa.array(timers),
        "gone": pa.array(gone),
    } | {name: state[name] for name in state.column_names}
    return pa.table(
        {field.name: given.get(field.name, pa.nulls(count, field.type)) for field in schema}
    ).cast(schema)  # fmt: skip


def batch_rows(tables: Tables, era: int, last: Committed) -> pa.Table:
    """The one row of what a batch publishes."""
    return pa.Table.from_pylist([last.row(era)], schema=arrow_schema(tables.table("state")))


def load(tables: Tables) -> Loaded:
    """The state as of the newest batch that has committed it."""
    tables.open("state")
    actions = tables.files("state")
    eras = actions["partition.era"].to_pylist() if actions.num_rows else []
    held = Held(own_columns(tables))
    if not eras:
        return Loaded(held, Committed(0))
    era = max(eras)
    found = tables.read("state", [("era", "=", era)])
    keys, batches = (found.filter(pc.equal(found["what"], what)) for what in (KEYS, BATCH))
    _fill(held, keys)
    row = max(batches.to_pylist(), key=lambda row: row["batch"])  # each commit has one
    return Loaded(held, _committed(row), era, keys.num_rows)


def committed(tables: DeltaReader, number: int) -> Committed | None:
    """What a batch has fixed; None where its row is not there (any more)."""
    if not number:
        return Committed(0)
    columns = ["batch", "outbox", *_COUNTS]
    found = tables.read("state", [("what", "=", BATCH), ("batch", "=", number)], columns).to_pylist()
    return _committed(found[0]) if found else None


def _committed(row: Mapping[str, Any]) -> Committed:
    outbox = None if row["outbox"] is None else pa.ipc.open_stream(row["outbox"]).read_all()
    return Committed(row["batch"], outbox, **{name: row[name] for name in _COUNTS})


def _fill(held: Held, rows: pa.Table) -> None:
    """Take in the newest row of each key."""
    ordered = rows.sort_by([("batch", "ascending")])
    newest = {key: at for at, key in enumerate(ordered["key"].to_pylist())}
    kept = ordered.take(pa.array(sorted(newest.values()), pa.int64()))
    kept = kept.filter(pc.invert(kept["gone"]))
    count = kept.num_rows
    keys, timers = kept["key"].to_pylist(), np.asarray(kept["timer"])
    held.put(keys, held.places(keys), kept.select(held.schema.names), timers, np.zeros(count, bool))
