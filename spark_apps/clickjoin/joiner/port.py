"""What becomes of a batch's foreign events: a tally by status, and the files that were written of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from clickjoin.kernel.data_file import DataFile
from clickjoin.model.extent import Extent

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Tally:
    """Rows of one status: where they lie, event times (microseconds) that 50, 90, 99 in 100 exceed.

    `absent`: rows whose primary event would lie where its stream is known to hold no more.
    """

    extent: Extent
    times: tuple[int, ...]
    absent: int = 0


@dataclass(frozen=True)
class Outcome:
    """The distinct events of a batch, each with one status: a tally by status, and files by table, in no table yet.

    `checked_against`: paths of the registry's files that the events were screened by. `left`: the events that wait or
    are expired, with column `status`. `final`: the batch's claims are committed, and this was decided by them alone;
    `dropped`: then, claimed events that have their primary event, and that the adapter drops now. `misfits`: values of
    joined rows that did not fit, by column. `absent`: events given up by the watermark.
    """

    tallies: Mapping[str, Tally]
    files: Mapping[str, Sequence[DataFile]]
    checked_against: pa.ChunkedArray
    left: Callable[[], pa.Table]
    final: bool = False
    dropped: int = 0
    misfits: Mapping[str, int] = field(default_factory=dict)
    absent: int = 0

    def count(self, *statuses: str) -> int:
        """Number of events with one of these statuses."""
        return sum(self.tallies[status].extent.rows for status in statuses if status in self.tallies)

    def files_of(self, table: str) -> Sequence[DataFile]:
        """What was written for a table."""
        return self.files.get(table, ())
