"""Checks of a pipeline before it runs, beyond the shape of its file."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from clickjoin.errors import ClickjoinError
from clickjoin.events import MICROS
from clickjoin.joiner.adapter import load_adapter
from clickjoin.known import refusal
from clickjoin.lake import SmallTables
from clickjoin.lake.types import delta_type
from clickjoin.registry.shards import require_same
from clickjoin.report.status import problem_text
from clickjoin.sources.base import Budget, Problem
from clickjoin.sources.files import FilesSource
from clickjoin.sources.sample import BYTES, RECORDS, Sample, sample

if TYPE_CHECKING:
    from clickjoin.config import Pipeline, Primary

_SHOWN = 12


def findings(pipeline: Pipeline) -> list[str]:
    """What is wrong, a sentence each; empty if nothing is."""
    lake = [f"lake {why}"] if (why := refusal(pipeline.root)) else _of_lake(pipeline)
    return lake + _of_adapter(pipeline) + _of_source("primary", pipeline) + _of_source("foreign", pipeline)


def _of_lake(pipeline: Pipeline) -> list[str]:
    small = SmallTables(pipeline.root)
    try:
        if small.exists("timeline"):
            require_same(small, pipeline)
    except ClickjoinError as error:
        return [str(error)]
    return []


def _of_adapter(pipeline: Pipeline) -> list[str]:
    try:
        adapter = load_adapter(pipeline.adapter)
        for kind in adapter.columns.values():
            delta_type(kind)
    except ClickjoinError as error:
        return [str(error)]
    return []


def _of_source(stream: str, pipeline: Pipeline) -> list[str]:
    side = pipeline.primary if stream == "primary" else pipeline.foreign
    source = FilesSource(side.source)
    plan = source.plan({}, Budget(RECORDS, BYTES))
    found = [f"{stream}.source: {_text(problem)}" for problem in plan.problems]
    if not plan.slices:
        nothing = "no file with a whole record matches; check folder and pattern"
        return found or [f"{stream}.source.path {side.source.path}: {nothing}"]
    return found + _of_records(stream, side, sample(source, plan.slices, pipeline.spec(stream, _now())))


def _text(problem: Problem) -> str:
    return problem_text(problem.kind, problem.path, problem.detail).removeprefix("problem: ")


def _of_records(stream: str, side: Primary, seen: Sample) -> list[str]:
    """What none of some records has: that is the file's fault, and not the records'."""
    if not seen.read or seen.good:
        return []
    has = ", ".join(seen.fields[:_SHOWN]) + (", …" if len(seen.fields) > _SHOWN else "")
    missing = [(field, name) for field, name in _columns(side).items() if name not in seen.fields]
    if missing and seen.fields:
        return [
            f"{stream}.{field}: none of {seen.read} records has a field `{name}`; they have {has}"
            for field, name in missing
        ]
    whole = f"all {seen.read} records that were looked at would go to quarantine"
    return [f"{stream}: {whole}, most of them as {seen.reason}: {seen.detail}"]


def _columns(side: Primary) -> dict[str, str]:
    """Fields of the pipeline's file that name a column, and the column."""
    fields = ("event_id", "event_time", "primary_id", "primary_time")
    named = {field: getattr(side, field, None) for field in fields}
    return {field: name for field, name in named.items() if isinstance(name, str) and name not in ("embedded", "uuid7")}


def _now() -> int:
    return int(time.time() * MICROS)
