"""What verification asks of a source: whether every record of what was planned is in a row, once.

Only a source knows which records a split holds, whether its offsets have gaps, and what tells one record's bytes from
another's. So it answers for its own splits; verification adds up the answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import pyarrow as pa

from clickjoin.kernel.parse.lines import TOO_LONG, taken_of
from clickjoin.model.errors import SourceError
from clickjoin.model.ids import RecordSpec
from clickjoin.model.split import PlannedSplit, SourceOffset, Split

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

UNREAD, OVERREAD, UNPROVEN = "unread", "overread", "unproven"
MAX_BYTES = 256_000_000  # of one stream, read again in one verification, unless its tables have lost something
NO_ROW = "records in the source, and in no table"


@dataclass(frozen=True)
class Fault:
    """Input that was not read as planned; `records`: how many records of it. `where`: the place, in the source's terms.

    `kind`: UNREAD (in the source, in no row), OVERREAD (in two rows, or not planned), or UNPROVEN (nobody can tell).
    """

    kind: str
    planned: PlannedSplit
    records: int
    detail: str
    where: Mapping[str, Any] = field(default_factory=dict)

    def sample(self) -> dict[str, Any]:
        """As plain data."""
        split = {"path": self.planned.split.path, "source_partition": self.planned.split.partition}
        batch = {"replica": self.planned.replica, "batch": self.planned.batch, "stream": self.planned.stream}
        return split | dict(self.where) | {"records": self.records} | batch | {"detail": self.detail}


@dataclass(frozen=True)
class Evidence:
    """All that a source may look at to answer for one stream.

    `planned`: splits of settled batches. `landed`: rows of the stream and of quarantine, those of these splits among
    them; columns stream, replica, batch, source_partition, offset, length, reason. `offsets`: by replica and
    partition, how far each has been planned. `spec`: how a record is read, by the time of planning (microseconds).
    `kept_since`: rows of an event time (microseconds) before it may have been collected. `most`: bytes of the source
    that may be read again; what lies beyond is reported as unproven. `too_long`: by replica and partition, offsets
    of what was too long for the other stream of one log, which put it into quarantine by the limit of then.
    """

    spark: SparkSession
    planned: Sequence[PlannedSplit]
    landed: DataFrame
    offsets: Mapping[str, Mapping[str, SourceOffset]]
    spec: Callable[[int], RecordSpec]
    kept_since: int
    most: float = MAX_BYTES
    too_long: Mapping[tuple[str, str], Collection[int]] = field(default_factory=dict)

    def missing(self, times: Iterable[int | None]) -> int:
        """How many records must have a row, by their event times (microseconds; None of a bad record)."""
        return sum(time is None or time >= self.kept_since for time in times)

    def without_row(self, planned: PlannedSplit, times: Mapping[int, int | None], rows: Collection[int]) -> int:
        """How many records of a split must have a row and have none. `times`: by offset; `rows`: offsets of rows."""
        there = self.too_long.get((planned.replica, planned.split.partition), ())
        return self.missing(time for offset, time in times.items() if offset not in rows and offset not in there)


class Completeness(NamedTuple):
    """What a source found wrong, and notes on what it could not prove."""

    faults: list[Fault]
    notes: tuple[str, ...] = ()


class Readable(Protocol):
    """A source that can read its splits again."""

    def lost(self, splits: Sequence[Split]) -> Mapping[str, str]:
        """Splits that cannot be read any more: partition to reason."""
        ...

    def read_again(self, spark: SparkSession, splits: Sequence[Split], spec: RecordSpec) -> pa.Table:
        """Records of the splits, in this process; columns as RECORDS_DDL."""
        ...

    def size(self, split: Split) -> int:
        """About how many bytes a split has."""
        ...


def by_reading_again(source: Readable, evidence: Evidence) -> Completeness:
    """Read each split again, newest first, and compare its records' offsets with those of the rows.

    For any source whose splits hold the same records each time they are read. It reads up to `evidence.most` bytes;
    what it cannot read is reported as unproven.
    """
    there, too_long = row_offsets(evidence)
    too_long = too_long if evidence.spec(0).where else {}
    faults: list[Fault] = []
    left = evidence.most
    for planned in sorted(evidence.planned, key=lambda planned: -planned.planned):
        rows = there.get(planned.key, Counter())
        twice = sum(rows.values()) - len(rows)
        if planned.lost:
            continue
        if twice:
            faults.append(Fault(OVERREAD, planned, twice, "two rows hold the same record"))
        left -= source.size(planned.split)
        records = _again(source, evidence, planned) if left >= 0 else None
        if records is None:
            why = "it cannot be read any more" if left >= 0 else "too much to be read again"
            faults.append(Fault(UNPROVEN, planned, 1, why))
            continue
        # What was too long by the limit of then may be another stream's record; its later parts are no records.
        faults += _compared(evidence, planned, records, rows, too_long.get(planned.key, Counter()))
    return Completeness(faults, unproven_notes(faults, "splits"))


def row_offsets(evidence: Evidence) -> tuple[dict[Any, Counter[int]], dict[Any, Counter[int]]]:
    """How often each record is in a row, by split; and the same of those alone that were too long."""
    keys = ["stream", "replica", "batch", "source_partition"]
    wanted = evidence.spark.createDataFrame(
        [planned.key for planned in evidence.planned],
        "stream STRING, replica STRING, batch BIGINT, source_partition STRING",
    )
    found: dict[Any, Counter[int]] = {}
    too_long: dict[Any, Counter[int]] = {}
    for *key, offset, reason in (
        evidence.landed.join(wanted, keys, "left_semi").select(*keys, "offset", "reason").collect()
    ):
        for counted in (found, too_long) if reason == TOO_LONG else (found,):
            counted.setdefault(tuple(key), Counter())[offset] += 1
    return found, too_long


def _again(source: Readable, evidence: Evidence, planned: PlannedSplit) -> pa.Table | None:
    try:
        if source.lost([planned.split]):
            return None
        spec = evidence.spec(planned.planned)
        # A record that a stream takes by its values is judged by them, whatever limits say by now.
        spec = spec.without_limits() if spec.where else spec
        return taken_of(source.read_again(evidence.spark, [planned.split], spec))[0]
    except SourceError:
        return None


def _compared(
    evidence: Evidence, planned: PlannedSplit, records: pa.Table, rows: Mapping[int, int], judged: Mapping[int, int]
) -> list[Fault]:
    times = dict(zip(records["offset"].to_pylist(), records["event_time"].cast(pa.int64()).to_pylist(), strict=True))
    missing = evidence.without_row(planned, times, rows)
    beyond = len(rows.keys() - times.keys() - judged.keys())
    faults = [Fault(UNREAD, planned, missing, NO_ROW)] if missing else []
    return faults + ([Fault(OVERREAD, planned, beyond, "rows that the split does not hold")] if beyond else [])


def unproven_notes(faults: Iterable[Fault], unit: str) -> tuple[str, ...]:
    """What could not be proven, and why; a sentence for each reason. `unit`: what is counted, such as byte ranges."""
    why = Counter(fault.detail for fault in faults if fault.kind == UNPROVEN)
    return tuple(f"{count} {unit} are unproven: {detail}" for detail, count in why.items())
