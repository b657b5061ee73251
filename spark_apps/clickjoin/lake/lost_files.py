"""Data files that a table's log names, and that are gone or damaged; taking them out of the table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from clickjoin.kernel.filesystem import filesystem
from clickjoin.model.store_faults import not_read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from clickjoin.lake.delta_reader import DeltaReader

_READERS = 8
_PASSING = ("spark.sql.files.ignoreMissingFiles", "spark.sql.files.ignoreCorruptFiles")
MISSING, DAMAGED = "missing_file", "damaged_file"


@dataclass(frozen=True)
class BadFile:
    """A file of a table that cannot be read: why, and the rows that the log says it held."""

    table: str
    path: str
    kind: str
    why: str
    rows: int


def bad_files(delta: DeltaReader, name: str, *, whole: bool = False) -> list[BadFile]:
    """Files that are gone, of another size than the log says, or without a readable end; `whole`: all is read.

    Errors: LakeError or StoreBusy where one cannot be looked at.
    """
    actions = delta.files(name)
    if not actions.num_rows:
        return []
    files, root = filesystem(delta.path(name))
    there = {info.path: info.size for info in files.get_file_info(pafs.FileSelector(root, recursive=True))}
    named = zip(*(actions[column].to_pylist() for column in ("path", "size_bytes", "num_records")), strict=True)

    def judge(item: tuple[str, int, int | None]) -> BadFile | None:
        path, size, rows = item
        place = f"{root}/{path}"
        kind, why = _fault(files, place, there.get(place, -1), size, whole)
        return BadFile(name, path, kind, why, rows or 0) if kind else None

    with ThreadPoolExecutor(_READERS) as pool:
        return [found for found in pool.map(judge, named) if found]


def _fault(files: pafs.FileSystem, place: str, there: int, size: int, whole: bool) -> tuple[str, str]:
    if there < 0 and files.get_file_info(place).type == pafs.FileType.NotFound:
        return MISSING, "is gone"
    if there >= 0 and there != size:
        return DAMAGED, f"has {there} bytes, and the log says {size}"
    try:
        with files.open_input_file(place) as file:
            pq.read_table(file) if whole else pq.read_metadata(file)
    except (pa.ArrowException, OSError) as error:
        if unread := not_read(place, error):  # what is taken for damaged, a repair takes out of its table
            raise unread from error
        return DAMAGED, str(error).splitlines()[0]
    return "", ""


@contextmanager
def passing_over(spark: SparkSession, wanted: bool) -> Iterator[None]:
    """Have Delta's own reader pass over files that are gone or damaged."""
    before = {name: str(spark.conf.get(name)) for name in _PASSING}
    for name in _PASSING if wanted else ():
        spark.conf.set(name, "true")
    try:
        yield
    finally:
        for name, value in before.items() if wanted else ():
            spark.conf.set(name, value)


def take_out(delta: DeltaReader, name: str, bad: Sequence[BadFile]) -> list[str]:
    """Take files that cannot be read out of a table, by one commit; what there is of them is kept, as `….damaged`.

    One that is there again by now goes anyway, since its rows have been made up for. Returns the paths.
    """
    files, root = filesystem(delta.path(name))
    for one in bad:
        if files.get_file_info(f"{root}/{one.path}").type != pafs.FileType.NotFound:
            files.move(f"{root}/{one.path}", f"{root}/{one.path}.damaged")
    done = delta.open(name).repair(dry_run=False)
    delta.forget(name)
    return [str(path) for path in done["files_removed"]]
