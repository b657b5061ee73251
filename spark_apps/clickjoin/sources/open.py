"""From what a pipeline's file says of a source to the source: the only place that knows all kinds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager
from typing import TYPE_CHECKING

from clickjoin.config import Delta, Files, Kafka, OfPipeline
from clickjoin.kernel.file_bytes import opened
from clickjoin.kernel.packed import BrokenFile
from clickjoin.kernel.remote_file import Handle
from clickjoin.model.errors import SourceError
from clickjoin.model.places import is_on_s3
from clickjoin.sources.delta.source import DeltaSource
from clickjoin.sources.files.sample import header
from clickjoin.sources.files.source import FilesSource, csv_form
from clickjoin.sources.port import Source

if TYPE_CHECKING:
    from clickjoin.config import AnySource
    from clickjoin.kernel.file_bytes import AllowedFolders


def open_source(
    config: AnySource, *, now: Callable[[], float] = time.time, tasks: int = 8, fence: AllowedFolders | None = None,
    keep: bool = True, here: Set[str] = frozenset(), group: str = "",
) -> Source:  # fmt: skip
    """The source that a stream's `source` names.

    `now`: seconds since 1970. `tasks`: how many read a large batch. `fence`: where files may lie, if that is not for
    the pipeline's file alone to say. Without `keep` its plans are only looked at, and so may cost less. `here`: globs
    whose files no executor sees, so that this process reads them all. `group`: as whom it is read, for tools that show
    how far readers have come.
    """
    if isinstance(config, Kafka):
        from clickjoin.sources.kafka.source import KafkaSource

        return KafkaSource(config, now=now, tasks=tasks, keep=keep, group=group)
    if isinstance(config, Delta | OfPipeline):
        absent = "not-begun" if isinstance(config, OfPipeline) else "missing"
        return DeltaSource(config.path, start=config.start, as_json=config.json_columns, tasks=tasks, absent=absent)
    if is_on_s3(config.path):
        from clickjoin.sources.s3.source import S3Source

        return S3Source(config, now=now, tasks=tasks, fence=fence, keep=keep)
    return FilesSource(config, now=now, tasks=tasks, fence=fence, keep=keep, here=config.path in here)


def in_files(config: Files | Kafka, path: str) -> Files:
    """The same records where they lie in files, which a glob names."""
    if isinstance(config, Files):
        return config.model_copy(update={"path": path})
    form = {"separator": config.separator, "columns": config.columns} if config.format == "csv" else {}
    return Files.model_validate({"kind": "files", "path": path, "format": "csv" if form else "jsonl", **form})


@contextmanager
def opened_log(path: str) -> Iterator[Handle]:
    """A file or an object, for reading. Errors: OSError, SourceError, ConfigError and StoreBusy of the store."""
    if not is_on_s3(path):
        with opened(path, None) as fd:
            yield fd
        return
    from clickjoin.sources.s3.bucket import opened_object

    yield opened_object(path)


def header_of(config: AnySource, path: str) -> bytes | None:
    """What each file of a source begins with, beside its records; empty where it cannot be read; None where nothing."""
    form = csv_form(config, path) if isinstance(config, Files) else None
    if not form or form.columns:
        return None
    try:
        with opened_log(path) as file:
            return header(file, path)
    except (OSError, SourceError, BrokenFile):
        return b""
