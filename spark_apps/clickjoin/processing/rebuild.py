"""Beginning again: what was processed is put aside, and the whole output is read again."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from clickjoin.engines.choose import open_own_tables
from clickjoin.lake.folders import moving_tables
from clickjoin.processing.loading import require_process
from clickjoin.processing.tables import folder
from clickjoin.schemas.process import PROCESS

if TYPE_CHECKING:
    from clickjoin.config import Pipeline

_WHAT = "process --rebuild"


def put_aside(pipeline: Pipeline, now: datetime) -> list[str]:
    """Give the tables of what was processed other names, which are returned; none where nothing was processed.

    A process that has them open commits to them no more, whether it was there before or began meanwhile.
    Errors: ConfigError where another does the same.
    """
    require_process(pipeline)
    delta = open_own_tables(pipeline, folder(pipeline), {table.name: table for table in PROCESS})
    there = [table.name for table in PROCESS if delta.exists(table.name)]
    if not there:
        return []
    with moving_tables(delta, _WHAT) as folders:
        delta.replaces(_WHAT, now)
        moved = [folders.put_aside(name, now) for name in there]
        delta.replaces(_WHAT, now)
    return moved
