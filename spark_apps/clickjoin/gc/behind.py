"""What per-key processing has not read of the output yet: its files stay, whatever has been compacted since."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from clickjoin.dispatcher.journal import JournalReader
from clickjoin.engines.choose import open_own_tables
from clickjoin.lake.location import LOG, location
from clickjoin.model.places import JOINED, folder_of
from clickjoin.processing.planning import REPLICA, SEQUENCE, STREAM
from clickjoin.processing.tables import folder
from clickjoin.schemas.process import PROCESS
from clickjoin.sources.delta.state import newest, pieces_of

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.sources.delta.state import TablePosition


class Behind(NamedTuple):
    """Since when (seconds since 1970) the output is unread, the last version that was read, and those that a batch
    under way reads.
    """

    since: float = float("inf")
    read: int = -1
    versions: tuple[int, ...] = ()


NOT_BEHIND = Behind()


def processing_behind(pipeline: Pipeline) -> Behind:
    """How far processing has come. One that never began reads the whole output as it is then, and holds nothing."""
    if pipeline.process is None:
        return NOT_BEHIND
    tables = open_own_tables(pipeline, folder(pipeline), {table.name: table for table in PROCESS})
    if not tables.exists("journal"):
        return NOT_BEHIND
    state = JournalReader(tables, pipeline.pipeline, REPLICA, SEQUENCE).load()
    position = newest(state.offsets.get(STREAM, {}))
    splits = state.unsettled.splits.get(STREAM, ()) if state.unsettled else ()
    versions = {piece.version for split in splits for piece in pieces_of(split)}
    if position is None or not position.at:
        return Behind(versions=tuple(sorted(versions)))
    return Behind(_since(pipeline, position), position.read, tuple(sorted(versions)))


def _since(pipeline: Pipeline, position: TablePosition) -> float:
    """When the last version that was read came, by the lake's clock, as files' ages are; its writer's may be wrong."""
    entry = location(folder_of(pipeline.root, JOINED)).stored(f"{LOG}/{position.read:020}.json")
    return min(position.at, entry.at) if entry else position.at
