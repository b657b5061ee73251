"""Whether files were read whole: every byte that was planned is in a row, or is no record at all.

Rows know their offset and length, and a record's length takes in its line's end: so rows of a split tile it, but for
blank lines and a CSV file's header. What is not tiled (see tiling.py) is read again here, and judged. A stream that
takes some records of its log leaves no tiles: there all of a split is read again, as far as `Evidence.most` goes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol

from pyspark.sql import Window
from pyspark.sql import functions as F

from clickjoin.model.errors import SourceError
from clickjoin.model.ids import RecordSpec
from clickjoin.model.split import PlannedSplit, SourceOffset, Split, SplitKey
from clickjoin.sources.completeness import (
    OVERREAD,
    UNPROVEN,
    UNREAD,
    Completeness,
    Evidence,
    Fault,
    Readable,
    by_reading_again,
    unproven_notes,
)
from clickjoin.sources.files.state import FilePosition, ends_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from clickjoin.sources.completeness import Evidence

_KEY = ("stream", "replica", "batch", "source_partition")
_KEY_DDL = "stream STRING, replica STRING, batch BIGINT, source_partition STRING"
# (offset + length)² - offset² telescopes over rows that tile a split; modulo a prime it cannot overflow.
_P = 2_147_483_647
_TILE = f"((2 * `offset` + length) % {_P}) * (length % {_P}) % {_P}"
_TILED = (
    "low = start AND (`end` < 0 OR high = `end`) AND bytes = high - start AND "
    f"tiles % {_P} = pmod((high % {_P}) * (high % {_P}) - (start % {_P}) * (start % {_P}), {_P})"
)
MAX_GAPS = 20_000


@dataclass(frozen=True)
class ByteGap:
    """Bytes of a split that no row covers (end -1: to the file's end), or (`twice`) that two rows cover."""

    key: SplitKey
    start: int
    end: int
    twice: bool = False


def byte_gaps(evidence: Evidence) -> tuple[list[ByteGap], bool]:
    """Where rows of splits leave bytes uncovered or cover some twice, or a .gz must be read on; and if that is all."""
    odd = _odd_splits(evidence)
    ends = [
        ByteGap(_key(row), row["start"] if row["high"] is None else row["high"], row["end"])
        for row in odd
        if row["high"] is None or _goes_on(row) or row["high"] < row["end"]
    ]
    beyond = [ByteGap(_key(row), row["end"], row["high"], True) for row in odd if 0 <= row["end"] < (row["high"] or 0)]
    untiled = [(*_key(row), row["start"]) for row in odd if not row["tiled"]]
    inner = [
        ByteGap(_key(row), row["was"], row["offset"], row["offset"] < row["was"])
        for row in (_inside(evidence, untiled) if untiled else ())
    ]
    return ends + beyond + inner, max(len(odd), len(inner)) < MAX_GAPS


def _goes_on(row: Any) -> bool:
    """Whether a file that is read to its end may hold more than its rows do."""
    return bool(row["end"] < 0 and row["broken"] == 0)


def _odd_splits(evidence: Evidence) -> list[Any]:
    """Splits that are not tiled, or read to the end of a file: their keys, ends, and how far their rows go."""
    rows = [(*one.key, *ends_of(one.split)) for one in evidence.planned if not one.lost]
    planned = evidence.spark.createDataFrame(rows, f"{_KEY_DDL}, `start` BIGINT, `end` BIGINT")
    tiles = evidence.landed.groupBy(*_KEY).agg(
        F.sum("length").alias("bytes"),
        F.min("offset").alias("low"),
        F.expr("max(`offset` + length)").alias("high"),
        F.expr(f"sum({_TILE})").alias("tiles"),
        F.expr("count_if(reason = 'broken-file')").alias("broken"),
    )
    known = planned.join(tiles, list(_KEY), "left").withColumn("tiled", F.expr(f"COALESCE({_TILED}, FALSE)"))
    odd = known.where("NOT tiled OR (`end` < 0 AND broken = 0)")
    return odd.select(*_KEY, "start", "end", "high", "broken", "tiled").limit(MAX_GAPS).collect()


def _key(row: Any) -> SplitKey:
    return row["stream"], row["replica"], row["batch"], row["source_partition"]


def _inside(evidence: Evidence, untiled: list[tuple[Any, ...]]) -> list[Any]:
    """Rows before which bytes are uncovered, or covered already: their split, offset, and `was`: how far it was."""
    splits = evidence.spark.createDataFrame(untiled, f"{_KEY_DDL}, `start` BIGINT")
    rows: DataFrame = evidence.landed.where("length > 0").join(splits, list(_KEY))
    before = Window.partitionBy(*_KEY).orderBy("offset", "length").rowsBetween(Window.unboundedPreceding, -1)
    rows = rows.withColumn("was", F.coalesce(F.max(F.expr("`offset` + length")).over(before), F.col("start")))
    return rows.where("`offset` <> was").select(*_KEY, "offset", "was").limit(MAX_GAPS).collect()


_UNIT = "byte ranges"
_CUT = f"more than {MAX_GAPS} {_UNIT} are in question, and only as many were looked at: verify a shorter range"
_REWRITTEN = "a file was rewritten after it was read, and shows no change: touch it, and it is read again"


class Bytes(Readable, Protocol):
    """What this needs of a source of files."""

    def reread(self, split: Split, start: int, end: int, spec: RecordSpec) -> list[int | None] | None:
        """Event times (microseconds; None of a bad record) of what is in bytes [start, end) of a planned split now.

        None if the bytes cannot be read any more.
        """
        ...

    def rewritten(self, offsets: Sequence[SourceOffset]) -> list[SourceOffset]:
        """Those whose files look as they did at the last look and hold other bytes: all that was read is compared."""
        ...


def check(source: Bytes, evidence: Evidence) -> Completeness:
    """Compare all that was planned to be read of files with what has landed."""
    if evidence.spec(0).where is not None:
        found = by_reading_again(source, evidence)
        return Completeness(misfits(evidence.planned) + found.faults + rewritten(source, evidence), found.notes)
    reader = _Reader(source, evidence)
    gaps, all_of_them = byte_gaps(evidence) if evidence.planned else ([], True)
    for gap in gaps:
        reader.judge(gap)
    reader.faults += rewritten(source, evidence)
    notes = unproven_notes(reader.faults, _UNIT) + (() if all_of_them else (_CUT,))
    return Completeness(misfits(evidence.planned) + reader.faults, notes)


def misfits(planned: Iterable[PlannedSplit]) -> list[Fault]:
    """Where splits of one generation leave bytes out, or read some twice. Lost splits are planned again, rightly."""
    by_file: defaultdict[tuple[str, str, str], list[tuple[int, int, PlannedSplit]]] = defaultdict(list)
    for one in planned:
        if not one.lost:
            by_file[one.replica, one.stream, one.split.partition].append((*ends_of(one.split), one))
    faults = []
    for splits in by_file.values():
        splits.sort(key=lambda one: one[0])
        for (_, end, before), (start, _, after) in pairwise(splits):
            if end < 0 or start < end:
                faults.append(_fault(OVERREAD, after, start, end, f"batch {before.batch} had read this already"))
            elif start > end and after.batch == before.batch + 1:
                faults.append(_fault(UNREAD, before, end, start, f"batch {after.batch} began behind these bytes"))
    return faults


def rewritten(source: Bytes, evidence: Evidence) -> list[Fault]:
    """A fault of kind `unproven` for each file of these splits whose bytes are not those that were read."""
    newest = {
        (one.replica, one.split.partition): one for one in sorted(evidence.planned, key=lambda planned: planned.batch)
    }
    faults = []
    for replica, offsets in evidence.offsets.items():
        asked = [offset for name, offset in offsets.items() if (replica, name) in newest]
        for offset in source.rewritten(asked):
            end = FilePosition.of(offset).offset
            faults.append(_fault(UNPROVEN, newest[replica, offset.partition], 0, end, _REWRITTEN))
    return faults


def _fault(kind: str, planned: PlannedSplit, start: int, end: int, detail: str, records: int = 1) -> Fault:
    """Bytes [start, end) of a file (end -1: to its end) that were not read as planned."""
    return Fault(kind, planned, records, detail, {"from": start, "to": end})


class _Reader:
    """Reads gaps again, and judges what is in them."""

    def __init__(self, source: Bytes, evidence: Evidence) -> None:
        self._source, self._evidence = source, evidence
        self._known: dict[SplitKey, PlannedSplit] = {planned.key: planned for planned in evidence.planned}
        self._left = evidence.most
        self.faults: list[Fault] = []

    def judge(self, gap: ByteGap) -> None:
        """Take a gap in."""
        planned = self._known[gap.key]
        if gap.twice:
            detail = "two rows hold these bytes, or a row lies outside of the split"
            self.faults.append(_fault(OVERREAD, planned, gap.start, gap.end, detail))
        elif gap.end - gap.start != 1:  # one byte is a line's end: a blank line
            self._read(planned, gap)

    def _read(self, planned: PlannedSplit, gap: ByteGap) -> None:
        size = gap.end - gap.start if gap.end >= 0 else self._source.size(planned.split)
        if size > self._left:
            self.faults.append(_fault(UNPROVEN, planned, gap.start, gap.end, "too long to be read again"))
            return
        self._left -= size
        try:
            times = self._source.reread(planned.split, gap.start, gap.end, self._evidence.spec(planned.planned))
        except SourceError:
            times = None
        if times is None and gap.end >= 0:
            detail = "no row holds these bytes, and no file does any more"
            self.faults.append(_fault(UNPROVEN, planned, gap.start, gap.end, detail))
        if missing := self._evidence.missing(times or ()):
            detail = "records in the file, and in no table"
            self.faults.append(_fault(UNREAD, planned, gap.start, gap.end, detail, missing))
