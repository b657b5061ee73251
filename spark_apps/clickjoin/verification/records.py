"""Input records against what has landed: every byte that was planned is in a row, or is no record at all.

Rows know their offset and length, and a record's length takes in its line's end: so rows of a slice tile it, but for
blank lines and a CSV file's header. Whether a slice is tiled shows in two sums; only where it is not are its rows put
in order, and the bytes between them read again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

from pyspark.sql import Window
from pyspark.sql import functions as F

from clickjoin.errors import SourceError
from clickjoin.events import MICROS
from clickjoin.verification.findings import SAMPLES, Count
from clickjoin.verification.journals import text
from clickjoin.verification.kinds import RECORDS, UNPROVEN
from clickjoin.verification.pieces import Fault, Piece, misfits, pieces
from clickjoin.verification.reading import Reading, part
from clickjoin.verification.rewritten import rewritten

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from clickjoin.config import Pipeline
    from clickjoin.lake import Lake
    from clickjoin.sources.base import Source

_SLICE = ("stream", "replica", "batch", "generation")
_SLICES_DDL = "stream STRING, replica STRING, batch BIGINT, generation STRING, `start` BIGINT, `end` BIGINT"
# (offset + length)² - offset² telescopes over rows that tile a slice; modulo a prime it cannot overflow.
_P = 2_147_483_647
_TILE = f"((2 * `offset` + length) % {_P}) * (length % {_P}) % {_P}"
_TILED = (
    "low = start AND (`end` < 0 OR high = `end`) AND bytes = high - start AND "
    f"tiles % {_P} = pmod((high % {_P}) * (high % {_P}) - (start % {_P}) * (start % {_P}), {_P})"
)
MOST_HOLES = 20_000
_CUT = f"more than {MOST_HOLES} byte ranges are in question, and only as many were looked at: verify a shorter range"
MOST_BYTES = 256_000_000  # read again in one verification; what lies beyond is said to be unproven


@dataclass(frozen=True)
class Hole:
    """Bytes of a slice that no row covers (end -1: to the file's end), or (`twice`) that two rows cover."""

    key: tuple[str, str, int, str]
    start: int
    end: int
    twice: bool = False


@dataclass(frozen=True)
class Checked:
    """Counts of `unread` and `overread` records, and of byte ranges that are `unproven`; notes on those.

    `unread`: slices whose records are in their files and in no table, by key.
    """

    counts: tuple[Count, ...]
    notes: tuple[str, ...]
    unread: Mapping[tuple[str, str, int, str], Piece]


def check(lake: Lake, pipeline: Pipeline, sources: Mapping[str, Source], reading: Reading, now_micros: int) -> Checked:
    """Compare all that was planned to be read with what has landed."""
    extent = reading.span.extent(int(pipeline.registry.bucket))
    landed = [reading.rows["foreign"], part(lake, "primary", extent)]
    seen = reduce(lambda a, b: a.unionAll(b), [rows.select("replica", "batch").distinct() for rows in landed])
    also = {(row["replica"], row["batch"]) for row in seen.distinct().collect()}
    found = pieces(lake.small, reading.journals.settled, reading.span, also)
    reader = _Reader(pipeline, sources, {piece.key: piece for piece in found}, now_micros)
    there, whole = holes(lake, found) if found else ([], True)
    for hole in there:
        reader.judge(hole)
    reader.faults += rewritten(lake.small, pipeline.pipeline, sources, found)
    faults = misfits(found) + reader.faults
    checked = sum(max(piece.slice.end - piece.slice.start, 0) for piece in found)
    counts = tuple(_count(kind, faults, checked) for kind in (*RECORDS, UNPROVEN))
    notes = reader.notes() + (() if whole else (_CUT,)) + _planless(reading, found, also)
    return Checked(counts, notes, {fault.piece.key: fault.piece for fault in reader.faults if fault.kind == "unread"})


def _planless(reading: Reading, found: list[Piece], landed: set[tuple[str, int]]) -> tuple[str, ...]:
    """A note on batches whose plan is gone: what they were to read cannot be told."""
    settled = reading.journals.settled
    done = {(replica, batch) for replica, batch in landed if batch <= settled.get((replica, "join"), 0)}
    count = len(done - {(piece.key[1], piece.key[2]) for piece in found})
    why = "it was rebuilt, or they are older than keep.journal"
    note = f"{count} batches have rows and no plan in the journal ({why}): their ids were checked, their input was not"
    return (note,) if count else ()


def _count(kind: str, faults: list[Fault], checked: int) -> Count:
    own = [fault for fault in faults if fault.kind == kind]
    samples = tuple(fault.sample() for fault in own[:SAMPLES])
    return Count(kind, sum(fault.records for fault in own), checked, kind != UNPROVEN, samples=samples)


def _landed(lake: Lake, found: list[Piece]) -> DataFrame:
    """Rows that these batches have landed, of both streams and quarantine: slice, offset, length, reason."""
    ranges: dict[str, tuple[int, int]] = {}
    for piece in found:
        low, high = ranges.get(piece.replica, (piece.batch, piece.batch))
        ranges[piece.replica] = (min(low, piece.batch), max(high, piece.batch))
    where = " OR ".join(
        f"(replica = {text(replica)} AND batch BETWEEN {low} AND {high})" for replica, (low, high) in ranges.items()
    )
    tables = {"primary": F.lit("primary"), "foreign": F.lit("foreign"), "quarantine": F.col("stream")}
    parts = [
        lake.read(name)
        .where(where)
        .select(
            stream.alias("stream"),
            *_SLICE[1:],
            "offset",
            "length",
            (F.col("reason") if name == "quarantine" else F.lit(None).cast("string")).alias("reason"),
        )
        for name, stream in tables.items()
    ]
    return reduce(lambda left, right: left.unionAll(right), parts)


def holes(lake: Lake, found: list[Piece]) -> tuple[list[Hole], bool]:
    """Where rows of slices leave bytes uncovered or cover some twice, or a .gz must be read on; and if that is all."""
    rows = [(*piece.key, piece.slice.start, piece.slice.end) for piece in found if not piece.lost]
    planned = lake.spark.createDataFrame(rows, _SLICES_DDL)
    landed = _landed(lake, found)
    tiles = landed.groupBy(*_SLICE).agg(
        F.sum("length").alias("bytes"),
        F.min("offset").alias("low"),
        F.expr("max(`offset` + length)").alias("high"),
        F.expr(f"sum({_TILE})").alias("tiles"),
        F.expr("count_if(reason = 'broken-gzip')").alias("broken"),
    )
    known = planned.join(tiles, list(_SLICE), "left").withColumn("tiled", F.expr(f"COALESCE({_TILED}, FALSE)"))
    odd = known.where("NOT tiled OR (`end` < 0 AND broken = 0)").limit(MOST_HOLES).localCheckpoint(eager=False)
    ends = [
        Hole(_key(row), row["start"] if row["high"] is None else row["high"], row["end"])
        for row in odd.where("high IS NULL OR (`end` < 0 AND broken = 0) OR high < `end`").collect()
    ]
    beyond = [
        Hole(_key(row), row["end"], row["high"], True) for row in odd.where("`end` >= 0 AND high > `end`").collect()
    ]
    inner = [Hole(_key(row), row["was"], row["offset"], row["offset"] < row["was"]) for row in _inside(landed, odd)]
    return ends + beyond + inner, max(odd.count(), len(inner)) < MOST_HOLES


def _key(row: Any) -> tuple[str, str, int, str]:
    return row["stream"], row["replica"], row["batch"], row["generation"]


def _inside(landed: DataFrame, odd: DataFrame) -> list[Any]:
    """Rows before which bytes are uncovered, or covered already: their slice, offset, and `was`: how far it was."""
    slices = odd.where("NOT tiled").select(*_SLICE, "start")
    rows = landed.where("length > 0").join(slices, list(_SLICE))
    before = Window.partitionBy(*_SLICE).orderBy("offset", "length").rowsBetween(Window.unboundedPreceding, -1)
    rows = rows.withColumn("was", F.coalesce(F.max(F.expr("`offset` + length")).over(before), F.col("start")))
    return rows.where("`offset` <> was").select(*_SLICE, "offset", "was").limit(MOST_HOLES).collect()


class _Reader:
    """Reads holes again, and judges what is in them."""

    def __init__(
        self, pipeline: Pipeline, sources: Mapping[str, Source], known: dict[Any, Piece], now_micros: int
    ) -> None:
        self._pipeline, self._sources, self._known, self._now = pipeline, sources, known, now_micros
        self._left = MOST_BYTES
        self.faults: list[Fault] = []

    def judge(self, hole: Hole) -> None:
        """Take a hole in."""
        piece = self._known[hole.key]
        if hole.twice:
            detail = "two rows hold these bytes, or a row lies outside of the slice"
            self.faults.append(Fault("overread", piece, hole.start, hole.end, 1, detail))
        elif hole.end - hole.start != 1:  # one byte is a line's end: a blank line
            self._read(piece, hole)

    def _read(self, piece: Piece, hole: Hole) -> None:
        size = hole.end - hole.start if hole.end >= 0 else self._sources[piece.stream].size(piece.slice)
        if size > self._left:
            self._unproven(piece, hole, "too long to be read again")
            return
        self._left -= size
        spec = self._pipeline.spec(piece.stream, piece.planned)
        try:
            found = self._sources[piece.stream].reread(piece.slice, hole.start, hole.end, spec)
        except SourceError:
            found = None
        if found is None and hole.end >= 0:
            self._unproven(piece, hole, "no row holds these bytes, and no file does any more")
        missing = sum(time is None or time >= self._kept(piece.stream) for time in found or ())
        if missing:
            detail = "records in the file, and in no table"
            self.faults.append(Fault("unread", piece, hole.start, hole.end, missing, detail))

    def _kept(self, stream: str) -> int:
        """Rows of an event time (microseconds) before this may have been collected."""
        return int(self._now - (self._pipeline.kept(stream) - self._pipeline.limits.max_skew) * MICROS)

    def _unproven(self, piece: Piece, hole: Hole, detail: str) -> None:
        self.faults.append(Fault(UNPROVEN, piece, hole.start, hole.end, 1, detail))

    def notes(self) -> tuple[str, ...]:
        """What could not be proven, and why."""
        why = Counter(fault.detail for fault in self.faults if fault.kind == UNPROVEN)
        return tuple(f"{count} byte ranges are unproven: {detail}" for detail, count in why.items())
