"""The port of joiners: a batch's foreign events in, an outcome out. Two joiners stand behind it, with equal results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from clickjoin.kernel.data_file import DataFile
from clickjoin.model.extent import Extent

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from clickjoin.batch_context import Context
    from clickjoin.event_store.join_input import JoinInput

CLAIMED = ("joined", "filtered", "unjoinable")  # the statuses that a claim is made for
MAX_DRIVER_ROWS = 50_000  # rows of a table that one process writes


@dataclass(frozen=True)
class Tally:
    """Rows of one status: where they lie, their shards, event times (microseconds) that 50, 90, 99 in 100 exceed.

    `size`: bytes of their records and of what the adapter has made of them. `absent`: rows whose primary event would
    lie where its stream is known to hold no more.
    """

    extent: Extent
    shards: frozenset[int]
    times: tuple[int, ...]
    size: int
    absent: int = 0


@dataclass(frozen=True)
class DataFiles:
    """Files that tasks have written of an outcome, by table, in no table yet.

    `checked_against`: paths of the registry's files that their events were screened by.
    """

    by_table: Mapping[str, Sequence[DataFile]]
    checked_against: pa.ChunkedArray


@dataclass(frozen=True)
class Outcome:
    """The distinct events of a batch, each with one status, and a tally by status.

    `rows` makes a DataFrame with column `status`, of every event that is in none of `files`, and of those that wait or
    are expired; `fits_driver`: it holds little enough for one process (`batch.driver_bytes`). `final`: the batch's
    claims are committed, and this was decided by them alone. `misfits`: values of joined rows that did not fit, by
    column. `absent`: events given up by the watermark.
    """

    rows: Callable[[], DataFrame]
    tallies: Mapping[str, Tally]
    fits_driver: bool
    files: DataFiles | None = field(default=None)
    final: bool = False
    misfits: Mapping[str, int] = field(default_factory=dict)
    absent: int = 0

    def count(self, *statuses: str) -> int:
        """Number of events with one of these statuses."""
        return sum(self.tallies[status].extent.rows for status in statuses if status in self.tallies)

    def files_of(self, table: str) -> Sequence[DataFile]:
        """What tasks have written for a table."""
        return self.files.by_table.get(table, ()) if self.files else ()


class Joiner(Protocol):
    """Screens a batch's foreign events, looks their primary events up, and runs the adapter; commits nothing."""

    def join(self, ctx: Context, work: JoinInput) -> Outcome:
        """The outcome of a batch that has claimed nothing yet. Errors: AdapterError."""
        ...
