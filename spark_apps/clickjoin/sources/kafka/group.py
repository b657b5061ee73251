"""Offsets of settled batches, committed to a consumer group: for tools that show lag, and for nothing else.

The journal alone says where a batch begins. A group that was reset, or is gone, changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clickjoin.kernel.kafka.connection import Connection
from clickjoin.model.split import Problem
from clickjoin.sources.kafka.planning import Look
from clickjoin.sources.kafka.state import Place, Position


class Group:
    """Tells the group of a connection how far partitions have been read."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._committed: dict[Place, int] = {}

    def tell(self, look: Look, positions: Mapping[str, Position]) -> Problem | None:
        """Commit what has changed, without waiting; what became of the commit before, where it was refused.

        `positions`: of settled batches.
        """
        own = (look.topic.cluster, look.topic.id)
        now = {
            position.place: position.next
            for position in positions.values()
            if (position.place.cluster, position.place.topic_id) == own
        }
        changed: dict[Place, Any] = dict(now.items() - self._committed.items())
        if changed:
            self._connection.commit([(look.name, place.number, offset) for place, offset in changed.items()])
            self._committed |= changed
        why = self._connection.uncommitted()
        detail = f"offsets are not committed to group {self._connection.group}, and tools show no lag: {why}"
        return Problem("not-committed", f"kafka:{look.name}", detail) if why else None
