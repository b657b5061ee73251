"""Checks of a pipeline before it runs, beyond the shape of its file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clickjoin.errors import ClickjoinError
from clickjoin.joiner.adapter import load_adapter
from clickjoin.lake.small import delta_type
from clickjoin.sources.base import Budget
from clickjoin.sources.files import FilesSource

if TYPE_CHECKING:
    from clickjoin.config import Pipeline

_CORE = {"event_id", "event_time", "bucket", "primary_id", "primary_time", "token", "replica", "published_at"}


def findings(pipeline: Pipeline) -> list[str]:
    """What is wrong, a sentence each; empty if nothing is."""
    return _of_adapter(pipeline) + _of_source("primary", pipeline) + _of_source("foreign", pipeline)


def _of_adapter(pipeline: Pipeline) -> list[str]:
    try:
        adapter = load_adapter(pipeline.adapter)
        for kind in adapter.columns.values():
            delta_type(kind)
    except ClickjoinError as error:
        return [str(error)]
    taken = sorted(_CORE & set(adapter.columns))
    return [f"adapter {pipeline.adapter}: columns {', '.join(taken)} are taken; rename them"] if taken else []


def _of_source(stream: str, pipeline: Pipeline) -> list[str]:
    source = (pipeline.primary if stream == "primary" else pipeline.foreign).source
    plan = FilesSource(source).plan({}, Budget(1_000, 1_000_000))
    found = [f"{stream}.source {problem.path}: {problem.kind}: {problem.detail}" for problem in plan.problems]
    if not found and not plan.slices:
        found = [f"{stream}.source.path {source.path}: no file with a whole record matches; check folder and pattern"]
    return found
