"""Digests of all that was read of a file, few enough for the journal: of blocks that grow as the file does.

Bytes [0, length) are cut into leaves of 64 KB. Leaves are hashed, and two digests of neighbours hash to that of a block
twice as long. Kept are those of 8 to 15 blocks of the longest kind, of shorter ones for what is left, and of the last
leaf as far as it goes: from 1 to about 30 digests, each 16 characters. Where blocks lie follows from the length alone.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Iterable, Iterator
from itertools import chain

from clickjoin.kernel.file_bytes import plain_blocks

LEAF = 1 << 16
_TOP_BITS = 4  # blocks of the longest kind are fewer than 2 to this
_WIDTH = 16
_STEP = 1 << 20
SEALED = "="  # begins the digest of digests, which is all that a split says of what lies before it


def layout(length: int) -> list[tuple[int, int]]:
    """Start and size of each block of the first `length` bytes."""
    leaves, at, found = length // LEAF, 0, []
    level = max(leaves.bit_length() - _TOP_BITS, 0)
    sizes = [LEAF << level] * (leaves >> level) + [LEAF << bit for bit in range(level - 1, -1, -1) if leaves >> bit & 1]
    for size in [*sizes, *([length % LEAF] if length % LEAF else [])]:
        found.append((at, size))
        at += size
    return found


def extended(prints: str, offset: int, blocks: Iterable[bytes], end: int) -> str | None:
    """Digests of [0, end), from those of [0, offset) and the bytes from the last whole leaf before `offset` to `end`.

    None where the bytes just before `offset` are not those that `prints` tells of.
    """
    known, rest = _split(prints), offset % LEAF
    leaves = _leaves(blocks)
    if rest:
        first = next(leaves, memoryview(b""))
        if _text(_digest(first[:rest])) != known.pop():
            return None
        leaves = chain([first], leaves)
    old = ((_level(size), text) for (_, size), text in zip(layout(offset), known, strict=False))
    fresh = ((0, _text(_digest(leaf))) for leaf in leaves)
    return "".join(_merged(chain(old, fresh), [_level(size) for _, size in layout(end)]))


def prints_of(blocks: Iterable[bytes], end: int) -> str:
    """Digests of [0, end) of what comes in blocks."""
    return extended("", 0, blocks, end) or ""


def blocks_of(prints: str, length: int) -> list[tuple[int, int, str]]:
    """Start, size and digest of each block; none where the digests are not those of so many bytes."""
    texts, places = _split(prints), layout(length)
    return [(*place, text) for place, text in zip(places, texts, strict=True)] if len(texts) == len(places) else []


def block_is(fd: int, start: int, size: int, text: str, path: str) -> bool:
    """Whether a plain file's block has this digest. Errors: SourceError if the file is shorter."""
    leaves = ((0, _text(_digest(leaf))) for leaf in _leaves(plain_blocks(fd, start, start + size, path, _STEP)))
    return "".join(_merged(leaves, [_level(size)])) == text


def last_is(fd: int, prints: str, length: int, path: str) -> bool:
    """Whether the unfinished leaf, if there is one, is what it was. Errors: SourceError if the file is shorter."""
    blocks = blocks_of(prints, length)
    start, size, text = blocks[-1] if blocks else (0, 0, "")
    return not 0 < size < LEAF or block_is(fd, start, size, text, path)


def after(fd: int, prints: str, offset: int, end: int, path: str) -> str | None:
    """Digests of a plain file's first `end` bytes, read from `offset` on; see `extended`."""
    return extended(prints, offset, plain_blocks(fd, offset - offset % LEAF, end, path, _STEP), end)


def root(prints: str, length: int) -> str:
    """The digest of digests, which stands for all of the first `length` bytes; empty for none."""
    return SEALED + _text(_digest(f"{length}:{prints}".encode())) if length else ""


def agree(known: str, prints: str, length: int) -> bool:
    """Whether what is known of the first `length` bytes, digests or their root, is this."""
    return known == (root(prints, length) if known.startswith(SEALED) else prints)


def _split(prints: str) -> list[str]:
    return [prints[at : at + _WIDTH] for at in range(0, len(prints), _WIDTH)]


def _level(size: int) -> int:
    return max((size // LEAF).bit_length() - 1, 0)


def _digest(data: bytes | memoryview) -> bytes:
    # Of what Python comes with, this is by far the fastest on processors of today. It need not stand an attack: who
    # could make two blocks collide writes the logs, and could as well write nothing.
    return hashlib.sha1(data, usedforsecurity=False).digest()[:12]


def _text(digest: bytes) -> str:
    return b64encode(digest).decode()


def _leaves(blocks: Iterable[bytes]) -> Iterator[memoryview]:
    left = b""
    for block in blocks:
        data = left + block if left else block
        whole = len(data) - len(data) % LEAF
        view = memoryview(data)
        for at in range(0, whole, LEAF):
            yield view[at : at + LEAF]
        left = data[whole:]
    if left:
        yield memoryview(left)


def _merged(parts: Iterator[tuple[int, str]], levels: Iterable[int]) -> Iterator[str]:
    """The digest of one block of each level, made of smaller ones that follow one another; ends where they do."""
    for level in levels:
        stack: list[tuple[int, str]] = []
        while [known for known, _ in stack] != [level]:
            if len(stack) > 1 and stack[-1][0] == stack[-2][0]:
                (low, left), (_, right) = stack[-2:]
                stack[-2:] = [(low + 1, _text(_digest((left + right).encode())))]
                continue
            part = next(parts, None)
            if part is None:
                return
            stack.append(part)
        yield stack[0][1]
