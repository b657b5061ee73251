"""Files that tasks have written in the place of others, in one commit: to readers, an update of the rows in them."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from clickjoin.kernel.data_file import DataFile
from clickjoin.model.errors import LakeError

if TYPE_CHECKING:
    import pyarrow as pa

    from clickjoin.engines.arrow.lake import ArrowLake
    from clickjoin.engines.arrow.tables import ArrowTables

_RACES = 100
_PAUSE = 0.02  # seconds, at most, times the number of lost races


def replace_files(lake: ArrowLake, name: str, old: pa.Table, new: Sequence[DataFile]) -> bool:
    """Put files in the place of others; False, and nothing changes, where one of those has gone meanwhile.

    What others add meanwhile stays. `old`: the table's files, columns as deltalake's flattened add actions. Errors: as
    of ArrowLake.rerun, and Unwritable.
    """
    return lake.rerun(name, lambda: _replaced(lake.delta, name, old, new))


def _replaced(delta: ArrowTables, name: str, old: pa.Table, new: Sequence[DataFile]) -> bool:
    going, coming = as_files(old, delta.table(name).partitions), {file.path for file in new}
    for race in range(_RACES):
        newest = delta.newest(name)
        there = set(newest.files()["path"].to_pylist())
        if coming <= there:  # a commit whose answer was lost
            delta.ensure_durable(name)
            return True
        # delta-rs commits the removal of what is not there, too: rows that somebody has moved or taken out since would
        # come back beside theirs.
        if not {file.path for file in going} <= there:
            return False
        if newest.commit_next(new, None, going):
            return True
        time.sleep(random.uniform(0, _PAUSE * min(race, 20)))
    raise LakeError(f"{delta.path(name)}: lost {_RACES} commits in a row", remedy="Look for a runaway writer")


def as_files(actions: pa.Table, partitions: Sequence[str]) -> list[DataFile]:
    """Files of a table, without statistics. Columns in: those of flattened add actions."""
    return [
        DataFile(row["path"], row["size_bytes"], row["num_records"] or 0, partition_values(row, partitions), "")
        for row in actions.to_pylist()
    ]


def partition_values(row: dict[str, Any], partitions: Sequence[str]) -> dict[str, str]:
    """Values of a file's partition columns as text. Columns in: those of a flattened add action."""
    return {name: str(row[f"partition.{name}"]) for name in partitions}
