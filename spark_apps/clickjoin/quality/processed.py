"""What per-key processing has made of a date, from its own tables: no Spark needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from clickjoin.lake.readable import ReadableTables
from clickjoin.model.errors import LakeError
from clickjoin.processing.check import check
from clickjoin.processing.tables import folder

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.model.span import Span


@dataclass(frozen=True)
class Processed:
    """Ids of signals that are there twice; faults of the sums, in sentences; late events of the date.

    `unknown`: why nothing is known, or empty.
    """

    twice: int = 0
    faults: tuple[str, ...] = ()
    late: int = 0
    unknown: str = ""


def measured(pipeline: Pipeline, span: Span) -> Processed | None:
    """The figures of a date; None for a pipeline that processes nothing by key."""
    if pipeline.process is None:
        return None
    tables = ReadableTables(folder(pipeline))
    if not tables.exists("signals"):
        return Processed(unknown="nothing was processed yet: run `clickjoin process`, or switch its DAG on")
    ids = tables.read("signals", columns=["id"])["id"]
    late = tables.read("late", [("event_time", ">=", span.low), ("event_time", "<", span.high)], ["reason"])
    try:
        faults = check(pipeline).faults
    except LakeError as error:
        faults = (str(error),)
    behind = pc.sum(pc.not_equal(late["reason"], "no-key")).as_py() or 0
    return Processed(len(ids) - pc.count_distinct(ids).as_py(), faults, behind)
