"""Where the whole frames of a .zst end, by their headers alone (RFC 8878, section 3.1). Runs on executors."""

from __future__ import annotations

from clickjoin.kernel.remote_file import Handle, length_of, pread

_FRAME = b"\x28\xb5\x2f\xfd"
_SKIPPED = b"\x2a\x4d\x18"  # after a byte of 0x50 to 0x5f
_RLE, _CHECKSUM = 1, 4


def is_skipped(head: bytes) -> bool:
    """Whether a frame begins that holds no content, as the first one of pzstd."""
    return head[1:4] == _SKIPPED and head[0] >> 4 == 5


def frames_end(fd: Handle) -> int:
    """Offset just behind the last frame that is there whole; 0 where none is."""
    size, at = length_of(fd), 0
    while True:
        end = _end_of(fd, at)
        if end is None or end > size:
            return at
        at = end


def _end_of(fd: Handle, at: int) -> int | None:
    """Where the frame at an offset ends; None where none begins, or its headers are not all there."""
    head = pread(fd, 8, at)
    if len(head) == 8 and is_skipped(head):
        return at + 8 + int.from_bytes(head[4:8], "little")
    if len(head) < 5 or head[:4] != _FRAME:
        return None
    descriptor = head[4]
    single = descriptor >> 5 & 1
    content = (single, 2, 4, 8)[descriptor >> 6]
    dictionary = (0, 1, 2, 4)[descriptor & 3]
    at += 5 + (0 if single else 1) + dictionary + content
    while len(block := pread(fd, 3, at)) == 3:
        header = int.from_bytes(block, "little")
        at += 3 + (1 if header >> 1 & 3 == _RLE else header >> 3)
        if header & 1:
            return at + (4 if descriptor & _CHECKSUM else 0)
    return None
