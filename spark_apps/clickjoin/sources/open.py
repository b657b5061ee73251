"""From what a pipeline's file says of a source to the source: the only place that knows all kinds."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from clickjoin.sources.delta.source import DeltaSource
from clickjoin.sources.files.sample import header
from clickjoin.sources.files.source import FilesSource, csv_form
from clickjoin.sources.port import Source

if TYPE_CHECKING:
    from clickjoin.config import AnySource
    from clickjoin.kernel.allowed_folders import AllowedFolders


def open_source(
    config: AnySource,
    *,
    now: Callable[[], float] = time.time,
    tasks: int = 8,
    fence: AllowedFolders | None = None,
    keep: bool = True,
) -> Source:
    """The source that a stream's `source` names.

    `now`: seconds since 1970; `tasks`: how many read a large batch; `fence`: where files may lie, if that is not for
    the pipeline's file alone to say; without `keep` its plans are only looked at, and so may cost less.
    """
    if config.kind != "files":
        absent = "not-begun" if config.kind == "pipeline" else "missing"
        return DeltaSource(config.path, start=config.start, as_json=config.json_columns, tasks=tasks, absent=absent)
    return FilesSource(config, now=now, tasks=tasks, fence=fence, keep=keep)


def header_of(config: AnySource, path: str) -> bytes | None:
    """What each file of a source begins with, beside its records; empty where it cannot be read; None where nothing."""
    form = csv_form(config, path) if config.kind == "files" else None
    return header(path) if form and not form.columns else None
