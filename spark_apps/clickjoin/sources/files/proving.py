"""Proving that files hold what was read of them: all of it, as far as one look may read for that.

A file that is as it was has nothing to prove. One that changed and did not grow is compared whole; one that grows, in
some blocks drawn by lot, so that a log costs no more with each look, and whole once it has come to rest. A change of
metadata (a rename, chmod, a hard link) is a change too: it is compared, found alike, and nobody hears of it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from random import Random

from clickjoin.kernel.file_bytes import AllowedFolders, opened, packed_blocks, plain_blocks
from clickjoin.kernel.packed import BrokenFile, is_packed
from clickjoin.model.errors import SourceError
from clickjoin.model.split import Problem
from clickjoin.sources.files.digests import SEALED, agree, block_is, blocks_of, prints_of
from clickjoin.sources.files.listing import LogFile
from clickjoin.sources.files.state import FilePosition, proof_of

FINE = 2  # seconds: what is written twice within a file system's tick bears one time
REST = 60  # seconds without a change, and one more for so many bytes, until what was read of a growing file is proven:
PER_SECOND = 4 << 20  # one that grows now and then is not read whole each time
WHOLE, SPOT = 128 << 20, 4 << 20  # bytes that one look reads for proofs, and by lot of those that grow


class Doubt(Enum):
    """Why a file that is taken for a known generation may not be one."""

    NONE = 0
    YOUNG = 1  # as it was, but read while it was written: not before it has come to rest
    RESTED = 2
    GROWN = 3
    ALTERED = 4


def span(position: FilePosition) -> int:
    """Of how many bytes the digests of a position are."""
    return position.size if position.state == "done" else position.offset


def as_it_was(file: LogFile, position: FilePosition) -> bool:
    """Whether neither size nor times of a file have changed since the last look."""
    known = (position.size, position.written_ns, position.changed_ns)
    return (file.size, file.mtime_ns, file.ctime_ns) == known and position.state != "gone"


def settled(file: LogFile, now: float) -> bool:
    """Whether any later change will show in a file's times; also where its clock is ahead of ours."""
    return abs(now - file.ctime_ns / 1e9) >= FINE


def doubt(file: LogFile, position: FilePosition, now: float) -> Doubt:
    """What there is to prove."""
    if as_it_was(file, position):
        if position.proven >= span(position):
            return Doubt.NONE
        rested = abs(now - file.ctime_ns / 1e9) >= REST + span(position) / PER_SECOND
        return Doubt.RESTED if rested else Doubt.YOUNG
    grown = file.size > position.size and file.path == position.path and position.state == "live"
    return Doubt.GROWN if grown else Doubt.ALTERED


@dataclass
class Prover:
    """Proofs of one look; `now` in seconds since 1970.

    `found`: of each generation the bytes proven so far, and its digests if they were not known. `wrong`: those whose
    files turned out to hold something else.
    """

    now: float
    lot: Random
    fence: AllowedFolders | None = None
    left: int = WHOLE
    spot: int = SPOT

    def __post_init__(self) -> None:
        self.found: dict[str, tuple[int, str]] = {}
        self.wrong: set[str] = set()

    def refute(self, tracked: Sequence[tuple[LogFile, FilePosition | None]]) -> set[str]:
        """Generations that their files do not hold. The smallest are compared first, and then some that grow."""
        by_doubt: dict[Doubt, list[tuple[LogFile, FilePosition]]] = {kind: [] for kind in Doubt}
        for file, position in tracked:
            if position and position.generation not in self.found and position.generation not in self.wrong:
                by_doubt[doubt(file, position, self.now)].append((file, position))
        whole = [*by_doubt[Doubt.RESTED], *by_doubt[Doubt.ALTERED]]
        for file, position in sorted(whole, key=lambda pair: span(pair[1]) - self._begin(*pair)):
            if not self._some(file, position):
                self.wrong.add(position.generation)
        self.wrong |= {position.generation for _, position in self._by_lot(by_doubt[Doubt.GROWN])}
        return {position.generation for _, position in tracked if position and position.generation in self.wrong}

    def same(self, file: LogFile, position: FilePosition) -> bool:
        """Whether a file holds all that was read of a generation, however much that is. Errors: OSError, BrokenFile."""
        with opened(file.path, self.fence) as fd:
            return self._whole(fd, file, position)

    def _whole(self, fd: int, file: LogFile, position: FilePosition) -> bool:
        end = span(position)
        packed = position.state != "done" and is_packed(fd, file.path)
        if not packed and not position.prints.startswith(SEALED):
            self.left = max(self.left, end)
            return self._on(fd, file, position, 0)
        proof = proof_of(position)
        blocks = packed_blocks(fd, 0, -1, proof, file.path) if packed else plain_blocks(fd, 0, end, file.path)
        try:
            prints = prints_of(_upto(blocks, end), end)
        except SourceError:
            return False
        self.found[position.generation] = (end, prints)
        return agree(position.prints, prints, end)

    def _begin(self, file: LogFile, position: FilePosition) -> int:
        return position.proven if as_it_was(file, position) else 0

    def _some(self, file: LogFile, position: FilePosition) -> bool:
        """Compare as much as this look has left for it."""
        try:
            with opened(file.path, self.fence) as fd:
                if position.state != "done" and (position.prints.startswith(SEALED) or is_packed(fd, file.path)):
                    return self._whole(fd, file, position)
                return self._on(fd, file, position, self._begin(file, position))
        except SourceError:
            return False  # shorter than it was listed
        except (OSError, BrokenFile):
            return True  # renamed just now, or unreadable or damaged, which others report

    def _on(self, fd: int, file: LogFile, position: FilePosition, begin: int) -> bool:
        end = span(position)
        blocks = blocks_of(position.prints, end)
        if end and not blocks:
            return False
        for start, size, text in blocks:
            if start < begin:
                continue
            if self.left < size and self.left < WHOLE:
                return True  # another look goes on from here
            self.left -= size
            if not block_is(fd, start, size, text, file.path):
                return False
            self.found[position.generation] = (start + size, "")
        self.found[position.generation] = (end, "")
        return True

    def _by_lot(self, grown: list[tuple[LogFile, FilePosition]]) -> Iterator[tuple[LogFile, FilePosition]]:
        lots = [(pair, block) for pair in grown for block in blocks_of(pair[1].prints, pair[1].offset)]
        self.lot.shuffle(lots)
        for pair, (start, size, text) in lots:
            if self.spot <= 0 or self.lot.random() * size > self.spot:
                return
            self.spot -= size
            if not self._block_is(pair[0].path, start, size, text):
                yield pair

    def _block_is(self, path: str, start: int, size: int, text: str) -> bool:
        try:
            with opened(path, self.fence) as fd:
                return is_packed(fd, path) or block_is(fd, start, size, text, path)
        except SourceError:
            return False  # shorter than it was listed
        except OSError:
            return True


def _upto(blocks: Iterator[bytes], end: int) -> Iterator[bytes]:
    """The first bytes of what comes in blocks; goes one block further, so that what breaks just there is found."""
    at = 0
    for block in blocks:
        if at < end:
            yield block[: end - at]
        at += len(block)
        if at > end:
            return


def carried(file: LogFile, known: FilePosition, prover: Prover) -> FilePosition:
    """A position with a file's times as found now, and with what this look has proven of it."""
    begin = known.proven if as_it_was(file, known) else 0
    proven, prints = prover.found.get(known.generation, (begin, ""))
    return replace(
        known,
        path=file.path,
        device=file.device,
        inode=file.inode,
        written_ns=file.mtime_ns,
        changed_ns=file.ctime_ns,
        proven=proven if settled(file, prover.now) else 0,
        prints=prints or known.prints,
    )


def belied(position: FilePosition, prover: Prover) -> bool:
    """Whether a file shows no change and holds other bytes than were read of it. One that changed, a look checks."""
    try:
        stat = os.stat(position.path)  # noqa: PTH116 - the path may hold bytes that are no UTF-8
        times = (stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)
        file = LogFile(position.path, stat.st_dev, stat.st_ino, *times, matched=True)
        return file.inode == position.inode and as_it_was(file, position) and not prover.same(file, position)
    except (OSError, BrokenFile):
        return False


@dataclass
class Memory:
    """What a process knows of files beyond the journal: positions that are proven further than it says, and why.

    A proof alone is not worth a batch. It is written down with the next plan that is.
    """

    better: dict[str, tuple[FilePosition, FilePosition]] = field(default_factory=dict)
    lot: Random = field(default_factory=Random)

    def over(self, positions: Mapping[str, FilePosition]) -> dict[str, FilePosition]:
        """Positions with what is known of them beyond that."""
        self.better = {name: pair for name, pair in self.better.items() if positions.get(name) == pair[0]}
        return {**positions, **{name: better for name, (_, better) in self.better.items()}}


def rewritten(position: FilePosition) -> Problem:
    """The problem of a file that does not hold any more what was read of it."""
    detail = (
        f"{position.path} holds other bytes than were read of its first {position.offset}: it was rewritten, and is "
        "read again from its beginning; what it held before may be lost. Append to logs, or write new files"
    )
    return Problem("rewritten", position.path, detail, 0, position.offset)
