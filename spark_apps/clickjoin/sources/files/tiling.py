"""Whether rows tile the bytes of their splits, by Spark: it shows in two sums a split.

Only where they do not are rows put in order, to find the bytes between them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import Window
from pyspark.sql import functions as F

from clickjoin.model.split import SplitKey
from clickjoin.sources.files.state import ends_of

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
