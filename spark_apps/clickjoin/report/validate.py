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
    return []


def _of_source(stream: str, pipeline: Pipeline) -> list[str]:
    source = (pipeline.primary if stream == "primary" else pipeline.foreign).source
    plan = FilesSource(source).plan({}, Budget(1_000, 1_000_000))
    found = [f"{stream}.source {problem.path}: {problem.kind}: {problem.detail}" for problem in plan.problems]
    if not found and not plan.slices:
        found = [f"{stream}.source.path {source.path}: no file with a whole record matches; check folder and pattern"]
    return found
