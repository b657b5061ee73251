"""Whether a cluster's executors see a pipeline's lake and logs, asked of them before anything is written."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from glob import iglob
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from clickjoin.config import Files
from clickjoin.config.streams import Delta, OfPipeline
from clickjoin.kernel.filesystem import local_folder
from clickjoin.kernel.handshake import Mark
from clickjoin.model.errors import ConfigError
from clickjoin.model.places import is_on_s3
from clickjoin.sources.files.allowed_folders import base_of
from clickjoin.spark.workers import cluster_of, unseen

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from clickjoin.config import Pipeline

_SAMPLES = 3
_LAKE = ""


def driver_reads(spark: SparkSession | None, pipeline: Pipeline, patterns: Sequence[str] = ()) -> frozenset[str]:
    """Globs whose files this process has to read, since no executor sees them: of the pipeline's logs, or those given.

    Nothing is asked where Spark is one process, or has not been started (a cluster's is, at once), or all lies on S3.
    Errors: ConfigError where executors do not see the lake, or do not see logs of which a batch may be more than this
    process reads (`batch.driver_bytes`).
    """
    master = cluster_of(spark) if spark else ""
    if spark is None or not master:
        return frozenset()
    patterns = patterns or [place for item in pipeline.inputs for place in _files_of(item.source)]
    with _marked(pipeline.root) as of_lake:
        hidden = _hidden(spark, of_lake, patterns)
        if hidden - {_LAKE}:  # a file may have been renamed between the two looks
            hidden = _hidden(spark, of_lake, patterns)
    if _LAKE in hidden:
        raise ConfigError(
            f"{pipeline.root}: the executors of {master} do not see this folder, where the lake is",
            remedy="Put the lake on S3 (lake: s3://BUCKET/PREFIX), or on a disk that each of them mounts at this path",
        )
    _require_small(pipeline, master, hidden)
    return frozenset(hidden)


def _files_of(source: object) -> list[str]:
    """A glob of what executors have to see of a source: of a table its log, for its data files come and go."""
    if isinstance(source, Files):
        return [source.path]
    return [f"{source.path}/_delta_log/*.json"] if isinstance(source, Delta | OfPipeline) else []


def _hidden(spark: SparkSession, of_lake: Sequence[Mark], patterns: Sequence[str]) -> set[str]:
    marks = [*of_lake, *(mark for pattern in patterns if not is_on_s3(pattern) for mark in _marks(pattern))]
    return unseen(spark, marks) if marks else set()


def _require_small(pipeline: Pipeline, master: str, hidden: set[str]) -> None:
    batch = pipeline.batch
    if hidden and batch.max_bytes > batch.driver_bytes:
        raise ConfigError(
            f"{', '.join(sorted(hidden))}: the executors of {master} do not see these files, and batches of up to "
            f"{batch.max_bytes:,} bytes (batch.max_bytes) are more than the driver reads itself, "
            f"{batch.driver_bytes:,} bytes (batch.driver_bytes)",
            remedy="Put the logs on S3, mount their folder at this path wherever executors run, or let the driver read "
            "all of them: set batch.driver_bytes to no less than batch.max_bytes",
        )


@contextmanager
def _marked(root: str) -> Iterator[list[Mark]]:
    """A mark of a lake on a disk: a file that nobody else has, for as long as the block."""
    folder = local_folder(root)
    if folder is None:
        yield []
        return
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"_seen-{uuid.uuid4().hex}"
    file.touch()
    try:
        yield [Mark(_LAKE, str(file), 0)]
    finally:
        file.unlink(missing_ok=True)


def _marks(pattern: str) -> Iterator[Mark]:
    """The folder that a glob starts from, and a few of its files as they are now."""
    yield Mark(pattern, base_of(pattern)[0])
    for path in islice(iglob(pattern, recursive=True), _SAMPLES):  # noqa: PTH207 - Path.glob knows no absolute pattern
        file = Path(path)
        if file.is_file():
            yield Mark(pattern, path, file.stat().st_size)
