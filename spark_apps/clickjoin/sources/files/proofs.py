"""What a planned position or split says of the content of its file."""

from __future__ import annotations

from clickjoin.kernel.file_bytes import Proof
from clickjoin.sources.files.state import FilePosition, FileSplit


def proof_of(item: FilePosition | FileSplit) -> Proof:
    """What a position or a split says of its file. The anchor of a split to the file's end lies before its start."""
    if isinstance(item, FilePosition):
        offset = item.offset
    else:
        offset = item.start if item.end < 0 else item.end
    return Proof(item.head_length, item.head_hash, offset, item.anchor_length, item.anchor_hash)
