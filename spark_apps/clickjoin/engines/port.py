"""What an engine does: the steps of a batch and of upkeep (`Lake`); commits of any table are in `tables_port`.

Which commit promises what is listed in docs/engines.md; `tests/conformance` holds every engine to it. No engine falls
back to another.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from clickjoin.lake.spark_reader import SparkReader
from clickjoin.model.errors import LakeError, TableMissing
from clickjoin.model.extent import Extent
from clickjoin.schemas import BY_NAME

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from clickjoin.engines.context import Context
    from clickjoin.engines.tables_port import Tables
    from clickjoin.kernel.adapter import Adapter
    from clickjoin.kernel.rewrite_task import BadRecords, Events
    from clickjoin.model.shards import Boundary
    from clickjoin.model.span import Span
    from clickjoin.model.txn import Txn
    from clickjoin.schemas import Table
    from clickjoin.sources.port import Source


@dataclass(frozen=True)
class JoinInput:
    """Where foreign events lie that are to be joined: `own`, and `named`, the primary events that they name.

    `due`: of a retry the events, columns as table `pending` without payload; their records lie in files `records` of
    that table, columns as deltalake's flattened add actions.
    """

    own: Extent
    named: Extent
    due: pa.Table | None = None
    records: pa.Table | None = None


@dataclass(frozen=True)
class Tally:
    """Rows of one status: where they lie, and quantiles p50, p10, p01 of their event times (microseconds).

    `absent`: rows whose primary event would lie where its stream is known to hold no more.
    """

    extent: Extent
    times: tuple[int, ...]
    absent: int = 0


@dataclass(frozen=True)
class Outcome:
    """The distinct events of a batch, each with one status, as a tally by status.

    `rows`: the events themselves, as the engine keeps them until they are claimed and published. `final`: the batch's
    claims are committed, and this was decided by them alone; `dropped`: then, claimed events that have their primary
    event, and that the adapter drops now. `misfits`: values of joined rows that did not fit, by column. `absent`:
    events given up by the watermark.
    """

    tallies: Mapping[str, Tally]
    rows: Any
    final: bool = False
    dropped: int = 0
    misfits: Mapping[str, int] = field(default_factory=dict)
    absent: int = 0

    def count(self, *statuses: str) -> int:
        """Number of events with one of these statuses."""
        return sum(self.tallies[status].extent.rows for status in statuses if status in self.tallies)


@dataclass(frozen=True)
class Rebuilt:
    """How many rows of a range of the output can be rebuilt (`rows`), and how many not, by reason; and those rows."""

    counts: dict[str, int]
    rows: Any = None


class ReadAhead(ABC):
    """What was read of a plan's records before the batch's turn; no commit names it yet."""

    @abstractmethod
    def of(self, ctx: Context) -> Mapping[str, Any]:
        """By stream what a batch whose plan is written down may land as its own, for Lake.land."""


class Lake(SparkReader, ABC):
    """The tables of one pipeline, through its engine. `conflict_reruns`: commits run again as another came first."""

    delta: Tables
    conflict_reruns: int
    sleep: Callable[[float], None]

    # A batch

    @abstractmethod
    def warm_up(self, adapter: Adapter) -> None:
        """Load what batches need into Spark's workers, where a session has been started."""

    @abstractmethod
    def land_ahead(self, ctx: Context, sources: Mapping[str, Source]) -> ReadAhead | None:
        """Read and write the records of a plan that is not written down yet, where that is worth it."""

    @abstractmethod
    def land(self, ctx: Context, stream: str, source: Source, written: Any = None) -> dict[str, Any] | None:
        """Append a batch's good records of a stream, once its txn; returns facts as kernel.land_task.placed names them.

        None where another copy of the batch has landed: it may have found other records. `written`: see ReadAhead.of.
        """

    @abstractmethod
    def put_aside(self, ctx: Context, stream: str, source: Source, facts: Mapping[str, Any], txn: Txn) -> None:
        """Append a batch's bad records of a stream to `quarantine`, once a txn. `facts`: of `land`, or of an earlier
        run, whose records are then read again: each goes there that has not landed, and no other.
        """

    @abstractmethod
    def resolve(self, ctx: Context, work: JoinInput, *, fixed: bool) -> Outcome:
        """Screen, look up and adapt: what becomes of each event. Errors: AdapterError.

        `fixed`: the batch's claims are committed, and they alone say what it may publish. An event that it claimed as
        joined, and whose primary event is not to be found, then has status `broken`; where one of the two has been
        forgotten since, `repeat`: its claim stays, and no row is due.
        """

    @abstractmethod
    def claim(self, ctx: Context, outcome: Outcome) -> bool:
        """Claim what is joined, filtered or given up, in one commit that fixes the batch's claims permanently.

        Ids that are taken are left out. Whether this call claimed every one of them: then no other look at the registry
        is needed to know what to publish.
        """

    @abstractmethod
    def publish(self, ctx: Context, outcome: Outcome) -> None:
        """Append the output, once the batch's txn: exactly the rows that its claims say are joined."""

    @abstractmethod
    def write_side_outputs(self, ctx: Context, outcome: Outcome, boundary: Callable[[], Boundary]) -> Mapping[str, int]:
        """Append what did not join to the table of its status, each in one commit.

        Returns counts by status where they are other than the outcome's. Which events wait is fixed by the commit to
        `pending`, before that to `expired`: the boundary (read again by `boundary`) moves on while a batch lies still,
        and a later run, or another copy, would call expired what an earlier one has put into `pending`, or lose what
        that one was about to call expired.
        """

    # Rows

    @abstractmethod
    def append(self, name: str, rows: DataFrame | pa.Table, txn: Txn) -> bool:
        """Append rows in one commit, once a txn: where the table holds it already, nothing is written.

        Whether it is these rows that the table holds under the txn.
        """

    @abstractmethod
    def insert_new(
        self, name: str, rows: pa.Table, extent: Extent | None = None, txn: Txn | None = None, *, by_id: bool = False
    ) -> int:
        """Append those rows whose event_id and event_time a table does not hold yet, in one commit; returns how many.

        Two processes never both add one. Nothing where the table holds the txn already; a txn is committed without
        rows, too. Columns in: the table's, keys each once. `extent`: where they lie. `by_id`: the id alone is the key,
        wherever it lies. Errors: CommitConflict.
        """

    @abstractmethod
    def delete_matched(
        self,
        name: str,
        events: DataFrame,
        extent: Extent | None = None,
        shards: Iterable[int] | None = None,
        *,
        same: tuple[str, ...] = ("token",),
        up_to: tuple[str, ...] = (),
    ) -> int:
        """Remove the rows of a table that some events name by event_id, event_time and the columns `same`; how many.

        `extent`, `shards`: where the events lie. `up_to`: columns of rows that may not be greater than the event's.
        """

    @abstractmethod
    def change_rows(self, name: str, change: RowChange) -> int:
        """Change rows of a table in one commit; returns how many. It can be repeated. Errors: CommitConflict."""

    @abstractmethod
    def count_rows(self, name: str, change: RowChange) -> int:
        """How many rows of a table a change is of; nothing is changed."""

    @abstractmethod
    def replace_rows(
        self, name: str, version: int, held: pa.Table, kept: pa.Table, same: Sequence[str], txn: Txn
    ) -> bool:
        """Replace rows of a table by those of them that are kept; False where they are no longer what they were.

        `held`: all rows of a version that have these ids and times, and these values in the columns `same`. Readers see
        the table before or after, nothing between. Nothing happens where the table holds the txn already.
        """

    @abstractmethod
    def output_of(self, ctx: Context, rows: pa.Table) -> pa.Table:
        """Rows of the output for those events whose primary event is there, and that the adapter keeps.

        Columns in: those of table `expired`. Errors: AdapterError.
        """

    @abstractmethod
    def rebuilt(self, ctx: Context, span: Span, *, writes: bool) -> Rebuilt:
        """The adapter's answer for every id of the output of a range. Nothing is committed; `writes`: it is kept for
        `replace_output`, and not only counted. Errors: AdapterError, LakeError.
        """

    @abstractmethod
    def replace_output(self, made: Rebuilt) -> bool:
        """Put rebuilt rows in the place of those they were made of; False, and nothing changes, where these were moved,
        changed or removed meanwhile. What others add meanwhile stays.
        """

    # Whole tables

    @abstractmethod
    def create_filled(self, table: Table, rows: DataFrame, name: str, order: str = "event_time") -> None:
        """Create a table under some name, then append its rows in one commit, sorted by a column within partitions.

        Errors: LakeError for a table that is there.
        """

    @abstractmethod
    def rewrite(
        self, name: str, place: str | None = None, order: str = "event_time", *, whole: bool = False
    ) -> int | None:
        """Rewrite the small files of a table, of a bucket or of a date, into few; `whole`, or is_sorted: all files.

        Returns the number of files that went, or None where another writer was busy in them: they are left as they are.
        """

    def require(self) -> None:
        """Check that every table is there. Errors: LakeError, also for a registry lost beside existing outputs."""
        if not self.delta.exists("registry") and self.delta.exists("joined"):
            raise LakeError(
                f"{self.delta.path('registry')}: the registry is missing while outputs exist",
                remedy="Never start an empty one: restore it, or rebuild it from the outputs",
            )
        for name in BY_NAME:
            if not self.delta.exists(name):
                raise TableMissing(f"{self.delta.path(name)}: no such table", remedy="Run `clickjoin init`")


@dataclass(frozen=True)
class RowChange:
    """What becomes of some rows of a table.

    `meant`: which rows; `values`: what they have instead, by column; None: they go. `with_record`: only those that hold
    a record. `extent`: where they lie.
    """

    meant: Events | BadRecords
    values: Mapping[str, str | None] | None = None
    with_record: bool = False
    extent: Extent | None = None
