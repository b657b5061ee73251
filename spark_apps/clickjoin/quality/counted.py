"""What was counted of a date beside its rows: by batches, a row each, and by per-key processing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from clickjoin.lake.readable import ReadableTables
from clickjoin.model.errors import LakeError
from clickjoin.processing.check import check
from clickjoin.processing.tables import folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from clickjoin.config import Pipeline
    from clickjoin.lake.delta_reader import DeltaReader
    from clickjoin.lake.spark_reader import SparkReader
    from clickjoin.model.span import Span

_KEY = ("replica", "sequence", "batch")
_COUNTED = ("quarantined", "primary_in", "events_in", "joined", "misfits")


def batches(
    lake: SparkReader, landed: Iterable[tuple[str, int]], tokens: Iterable[str | None], typed: Sequence[str]
) -> DataFrame:
    """Rows of batches: replica, sequence, batch; records, quarantined (of those that landed some of the date);
    published, and misfits_COLUMN for each typed column (of those that published some).

    `landed`: replica and number; `tokens`: of the output's rows; `typed`: columns of output.columns.
    """
    columns = ("records", "quarantined", "published", *(f"misfits_{name}" for name in typed))
    ddl = "replica STRING, sequence STRING, batch BIGINT, " + ", ".join(f"`{name}` BIGINT" for name in columns)
    rows = [tuple(row.get(name) for name in (*_KEY, *columns)) for row in counted(lake.delta, landed, tokens, typed)]
    return lake.spark.createDataFrame(rows, ddl)


def counted(
    delta: DeltaReader, landed: Iterable[tuple[str, int]], tokens: Iterable[str | None], typed: Sequence[str]
) -> list[dict[str, Any]]:
    """The same as rows; none of a batch whose metrics are gone."""
    landing, published = set(landed), _numbers(tokens)
    numbers = sorted({number for _, number in landing} | {number for _, _, number in published})
    where, found = [("batch", "in", numbers)], []
    for row in delta.read("metrics", where, [*_KEY, *_COUNTED]).to_pylist() if numbers else ():
        one = {name: row[name] for name in _KEY}
        if row["sequence"] == "join" and (row["replica"], row["batch"]) in landing:
            quarantined = row["quarantined"] or 0
            good = (row["primary_in"] or 0) + (row["events_in"] or 0)
            one |= {"records": good + quarantined, "quarantined": quarantined}
        if tuple(one[name] for name in _KEY) in published:
            misfits = json.loads(row["misfits"] or "{}")
            one |= {"published": row["joined"] or 0} | {f"misfits_{name}": misfits.get(name, 0) for name in typed}
        if len(one) > len(_KEY):
            found.append(one)
    return sorted(found, key=lambda one: [one[name] for name in _KEY])


def _numbers(tokens: Iterable[str | None]) -> set[tuple[str, str, int]]:
    """Replica, sequence and number of batches; what is no token, someone else has written."""
    parts = (token.split("/") for token in tokens if token)
    return {(part[1], part[2], int(part[3])) for part in parts if len(part) == 4 and part[3].isdecimal()}


def unknown(pipeline: Pipeline) -> str:
    """Why nothing is known of processing; empty where something is."""
    there = ReadableTables(folder(pipeline)).exists("signals")
    return "" if there else "nothing was processed yet: run `clickjoin process`, or switch its DAG on"


_COLUMNS = {"signals": "id STRING", "late": "event_id STRING, event_time TIMESTAMP, reason STRING"}
PROCESSED = (*_COLUMNS, "sums")


def processed(asset: str, lake: SparkReader, pipeline: Pipeline, span: Span) -> DataFrame:
    """All signals (id), events of the date that came behind the watermark (late), or faults of the sums (fault)."""
    if asset == "sums":
        return lake.spark.createDataFrame([(fault,) for fault in sums(pipeline)], "fault STRING")
    if unknown(pipeline):
        return lake.spark.createDataFrame([], _COLUMNS[asset])
    rows = lake.spark.read.format("delta").load(f"{folder(pipeline)}/{asset}")
    rows = rows.where(f"({span.sql()}) AND reason <> 'no-key'") if asset == "late" else rows
    return rows.select(*(column.split()[0] for column in _COLUMNS[asset].split(", ")))


def sums(pipeline: Pipeline) -> tuple[str, ...]:
    """Faults of the sums of processing, in sentences."""
    try:
        return check(pipeline).faults
    except LakeError as error:
        return (str(error),)
