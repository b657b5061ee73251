"""What the logs of some tables say, read after the call: side by side on S3, where it is their copies that are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from clickjoin.lake.log_entries import TableLog, read_log

if TYPE_CHECKING:
    from clickjoin.lake.delta_reader import DeltaReader


def logs(delta: DeltaReader, names: Sequence[str]) -> Mapping[str, TableLog]:
    """The log of each table that is there, as of a look that begins now, in the names' order."""
    delta.look_at(names)
    return {name: log for name in names if (log := _log(delta, name)).version >= 0}


def _log(delta: DeltaReader, name: str) -> TableLog:
    copy = delta.log_copy(name)
    if copy is not None:
        log = read_log(copy)
        if log.version >= 0 and not log.torn:
            return log
    # A copy begins with the checkpoint that the pointer names; what is wrong with that, the whole log says.
    return read_log(delta.path(name))
