"""From what a pipeline's file says of a source to the source: the only place that knows all kinds."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from clickjoin.sources.files.sample import header
from clickjoin.sources.files.source import FilesSource, csv_form
from clickjoin.sources.port import Source

if TYPE_CHECKING:
    from clickjoin.config import Files
    from clickjoin.kernel.allowed_folders import AllowedFolders


def open_source(
    config: Files,
    *,
    now: Callable[[], float] = time.time,
    tasks: int = 8,
    fence: AllowedFolders | None = None,
    keep: bool = True,
    here: bool = False,
) -> Source:
    """The source that a stream's `source` names.

    `now`: seconds since 1970; `tasks`: how many read a large batch; `fence`: where files may lie, if that is not for
    the pipeline's file alone to say; without `keep` its plans are only looked at, and so may cost less; `here`: no
    executor sees its files, so that this process reads them all.
    """
    return FilesSource(config, now=now, tasks=tasks, fence=fence, keep=keep, here=here)


def header_of(config: Files, path: str) -> bytes | None:
    """What each file of a source begins with, beside its records; empty where it cannot be read; None where nothing."""
    form = csv_form(config, path)
    return header(path) if form and not form.columns else None
