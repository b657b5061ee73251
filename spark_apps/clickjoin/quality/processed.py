"""What per-key processing has made of a date: its signals, late events, and faults of its sums."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from clickjoin.lake.readable import ReadableTables
from clickjoin.model.errors import LakeError
from clickjoin.processing.check import check
from clickjoin.processing.tables import folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from clickjoin.config import Pipeline
    from clickjoin.lake.spark_reader import SparkReader
    from clickjoin.model.span import Span


def unknown(pipeline: Pipeline) -> str:
    """Why nothing is known of processing; empty where something is."""
    there = ReadableTables(folder(pipeline)).exists("signals")
    return "" if there else "nothing was processed yet: run `clickjoin process`, or switch its DAG on"


def _signals(lake: SparkReader, pipeline: Pipeline, span: Span) -> DataFrame:
    """All signals: id."""
    if unknown(pipeline):
        return lake.spark.createDataFrame([], "id STRING")
    return lake.spark.read.format("delta").load(f"{folder(pipeline)}/signals").select("id")


def _late(lake: SparkReader, pipeline: Pipeline, span: Span) -> DataFrame:
    """Events of the date that came behind the watermark: event_id, event_time, reason."""
    if unknown(pipeline):
        return lake.spark.createDataFrame([], "event_id STRING, event_time TIMESTAMP, reason STRING")
    rows = lake.spark.read.format("delta").load(f"{folder(pipeline)}/late").where(span.sql())
    return rows.where("reason <> 'no-key'").select("event_id", "event_time", "reason")


def _sums(lake: SparkReader, pipeline: Pipeline, span: Span) -> DataFrame:
    """What is wrong with the sums of processing: fault (a sentence)."""
    return lake.spark.createDataFrame([(fault,) for fault in sums(pipeline)], "fault STRING")


def sums(pipeline: Pipeline) -> tuple[str, ...]:
    """Faults of the sums of processing, in sentences."""
    try:
        return check(pipeline).faults
    except LakeError as error:
        return (str(error),)


FRAMES: dict[str, Callable[[SparkReader, Pipeline, Span], DataFrame]] = {
    "signals": _signals,
    "late": _late,
    "sums": _sums,
}
