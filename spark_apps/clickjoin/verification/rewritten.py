"""Files that hold other bytes than were read of them, and show no change: only reading all of them tells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from clickjoin.dispatcher.journal import Journal
from clickjoin.verification.kinds import UNPROVEN
from clickjoin.verification.pieces import Fault, Piece

if TYPE_CHECKING:
    from clickjoin.lake import SmallTables
    from clickjoin.sources.base import Source

_DETAIL = "a file was rewritten after it was read, and shows no change: touch it, and it is read again"


def rewritten(small: SmallTables, pipeline: str, sources: Mapping[str, Source], found: Iterable[Piece]) -> list[Fault]:
    """A fault of kind `unproven` for each file of these slices whose bytes are not those that were read."""
    newest = {
        (piece.replica, piece.stream, piece.slice.generation): piece
        for piece in sorted(found, key=lambda piece: piece.batch)
    }
    faults = []
    for replica in sorted({replica for replica, _, _ in newest}):
        for stream, known in Journal(small, pipeline, replica, "join").load().positions.items():
            asked = [position for name, position in known.items() if (replica, stream, name) in newest]
            for position in sources[stream].rewritten(asked):
                piece = newest[replica, stream, position.generation]
                faults.append(Fault(UNPROVEN, piece, 0, position.offset, 1, _DETAIL))
    return faults
