"""Checks of a pipeline before it runs, beyond the shape of its file."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from clickjoin.joiner.adapter import adapter_of
from clickjoin.joiner.typed_output import sampled, shown_paths, with_types
from clickjoin.kernel.typed_columns.derive import has
from clickjoin.kernel.types import delta_type
from clickjoin.lake.delta_reader import DeltaReader
from clickjoin.lake.requirements import refusal
from clickjoin.model.errors import ClickjoinError
from clickjoin.model.ids import MICROS
from clickjoin.model.split import Budget, Problem
from clickjoin.registry.shards import require_same
from clickjoin.report.status import problem_text
from clickjoin.sources.open import open_source
from clickjoin.sources.port import SAMPLE_BYTES, SAMPLE_RECORDS, Sample

if TYPE_CHECKING:
    from clickjoin.config import Pipeline, Primary
    from clickjoin.config.inputs import Input

_SHOWN = 12


def findings(pipeline: Pipeline) -> list[str]:
    """What is wrong, a sentence each; empty if nothing is."""
    lake = [f"lake {why}"] if (why := refusal(pipeline.root)) else _of_lake(pipeline)
    return lake + _of_adapter(pipeline) + [line for item in pipeline.inputs for line in _of_source(item)]


def _of_lake(pipeline: Pipeline) -> list[str]:
    delta = DeltaReader(pipeline.root)
    try:
        if delta.exists("shard_timeline"):
            require_same(delta, pipeline)
    except ClickjoinError as error:
        return [str(error)]
    return []


def _of_adapter(pipeline: Pipeline) -> list[str]:
    try:
        adapter = adapter_of(with_types(pipeline, DeltaReader(pipeline.root)))
        for kind in adapter.columns.values():
            delta_type(kind)
    except ClickjoinError as error:
        return [str(error)]
    return _of_columns(pipeline)


def _of_columns(pipeline: Pipeline) -> list[str]:
    """Paths of the output's columns that no record has."""
    columns = [column.typed(name) for name, column in pipeline.output.columns.items()]
    samples = sampled(pipeline, {column.stream for column in columns})
    return [
        f"output.columns.{column.name}: none of {len(texts)} records has {column.source}; they have "
        + shown_paths(texts)
        for column in columns
        if (texts := samples[column.stream]) and not has(texts, column.path)
    ]


def _of_source(item: Input) -> list[str]:
    source = open_source(item.source)
    plan = source.plan({}, Budget(SAMPLE_RECORDS, SAMPLE_BYTES))
    found = [f"{item.name}.source: {_text(problem)}" for problem in plan.problems]
    if not plan.splits:
        nothing = "no file with a whole record matches; check folder and pattern"
        return found or [f"{item.name}.source.path {item.source.path}: {nothing}"]
    return found + _of_records(item.name, item.stream, source.sample(plan.splits, item.spec(_now())))


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
