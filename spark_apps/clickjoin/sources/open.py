"""From what a pipeline's file says of a source to the source: the only place that knows all kinds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from clickjoin.kernel.file_bytes import opened
from clickjoin.kernel.packed import BrokenFile
from clickjoin.kernel.remote_file import Handle
from clickjoin.model.errors import SourceError
from clickjoin.model.places import is_on_s3
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
    if is_on_s3(config.path):
        from clickjoin.sources.s3.source import S3Source

        return S3Source(config, now=now, tasks=tasks, fence=fence, keep=keep)
    return FilesSource(config, now=now, tasks=tasks, fence=fence, keep=keep, here=here)


@contextmanager
def opened_log(path: str) -> Iterator[Handle]:
    """A file or an object, for reading. Errors: OSError, SourceError, ConfigError and StoreBusy of the store."""
    if not is_on_s3(path):
        with opened(path, None) as fd:
            yield fd
        return
    from clickjoin.sources.s3.bucket import opened_object

    yield opened_object(path)


def header_of(config: Files, path: str) -> bytes | None:
    """What each file of a source begins with, beside its records; empty where it cannot be read; None where nothing."""
    form = csv_form(config, path)
    if not form or form.columns:
        return None
    try:
        with opened_log(path) as file:
            return header(file, path)
    except (OSError, SourceError, BrokenFile):
        return b""
