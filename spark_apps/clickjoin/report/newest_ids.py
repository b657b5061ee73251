"""Ids of the records that landed last, a bounded number of them, to look how a pipeline stands. No Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow.dataset as ds
import pyarrow.fs as pafs

from clickjoin.kernel.filesystem import filesystem
from clickjoin.lake.readable import readable
from clickjoin.model.ids import micros_of
from clickjoin.report.placeholders import placeholders
from clickjoin.schemas import BY_NAME
from clickjoin.schemas.arrow import arrow_schema
from clickjoin.sources.sample import Key

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.lake.delta_reader import DeltaReader

_FILES, _RECORDS = 32, 5_000
_COLUMNS = {"primary": ("event_id", "event_time"), "foreign": ("event_id", "event_time", "primary_id")}


def frequent_ids(pipeline: Pipeline, delta: DeltaReader) -> list[str]:
    """What to say of ids that are too frequent to be ids, among the records that landed last. Errors: LakeError."""
    keys = {item.name: _newest(delta, item.name) for item in pipeline.inputs}
    sections = {item.name: item.section for item in pipeline.inputs}
    return placeholders(keys, sections, by_lookback=pipeline.around is not None)


def _newest(delta: DeltaReader, name: str) -> list[Key]:
    """Of the files of the newest batches, the first records; a file holds those of one stretch of event time."""
    actions = delta.files(name)
    if not actions.num_rows:
        return []
    files = actions.select(["path", "max.batch", "modification_time"]).to_pylist()
    files.sort(key=lambda file: (file["modification_time"], file["max.batch"] or 0), reverse=True)
    base, inner = filesystem(delta.path(name))
    dataset = ds.FileSystemDataset.from_paths(
        [unquote(str(file["path"])) for file in files[:_FILES]],
        schema=arrow_schema(BY_NAME[name]),
        format=ds.ParquetFileFormat(),
        filesystem=pafs.SubTreeFileSystem(inner, base),
    )
    with readable(delta.root, name):
        return [_key(row) for row in dataset.head(_RECORDS, columns=list(_COLUMNS[name])).to_pylist()]


def _key(row: dict[str, Any]) -> Key:
    return Key(row["event_id"], micros_of(row["event_time"]), row.get("primary_id"), None)
