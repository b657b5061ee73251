"""Which file is which: files as found now are matched to the generations that are known. Pure but for its probe.

A generation is its content: the same through a rename, a copy, or `gzip`. A known inode is the same generation while
its first bytes and those before the known offset are the same, and no proof (see `proving.py`) finds another between
them; if not, it was truncated or rewritten and is a new one. Another inode takes up a lost generation only if all of
what was read is in it, and that is enough. On any doubt a file is read whole: what is read twice is dropped later,
what is skipped would be lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from clickjoin.kernel.file_bytes import HEAD, fingerprint
from clickjoin.kernel.packed import may_be_packed
from clickjoin.sources.files.listing import Listing, LogFile
from clickjoin.sources.files.proving import as_it_was
from clickjoin.sources.files.state import FilePosition

ENOUGH = 256  # bytes already read, from which on head and anchor prove that another inode is the same content


class Verdict(Enum):
    """Whether a file holds a known generation. UNKNOWN: it cannot be read now, or a .gz is still being written."""

    SAME = "same"
    OTHER = "other"
    UNKNOWN = "unknown"


class Probe(Protocol):
    """Looks into files."""

    def compare(self, file: LogFile, position: FilePosition) -> Verdict:
        """Whether the file seems to hold the generation up to its offset, by its ends."""
        ...

    def same(self, file: LogFile, position: FilePosition) -> bool:
        """Whether another file holds all that was read of the generation."""
        ...

    def refuted(self, tracked: Sequence[tuple[LogFile, FilePosition | None]]) -> set[str]:
        """Generations that their files turn out not to hold."""
        ...

    def head(self, file: LogFile) -> bytes | None:
        """Up to the first 1024 bytes; None if they cannot be read."""
        ...

    def settled(self, file: LogFile) -> bool:
        """Whether the file can be read to its end as it is: always, but for a .gz still being written."""
        ...


@dataclass
class Match:
    """Files with their generation (None: a new one); generations that are nowhere; .gz files to wait for."""

    tracked: list[tuple[LogFile, FilePosition | None]] = field(default_factory=list)
    strangers: list[LogFile] = field(default_factory=list)
    orphans: dict[str, FilePosition] = field(default_factory=dict)
    retired: list[FilePosition] = field(default_factory=list)
    waiting: list[LogFile] = field(default_factory=list)


def unread(position: FilePosition) -> bool:
    """Whether bytes were known at the last look that have not been planned."""
    return position.state == "live" and (position.size > position.offset or may_be_packed(position.path))


def follow(listing: Listing, positions: Mapping[str, FilePosition], probe: Probe) -> Match:
    """Match files to generations by inode. What is left are strangers (files) and orphans (generations)."""
    match = Match()
    known = _KnownFiles(positions.values())
    seen = set()
    for file in _once(listing.files, known):
        position = known.of(file)
        verdict = _verdict(file, position, probe) if position else Verdict.OTHER
        if position is None or verdict is Verdict.OTHER:
            match.strangers.append(file)
            continue
        seen.add(position.generation)
        if verdict is Verdict.SAME:
            match.tracked.append((file, position))
    wrong = probe.refuted(match.tracked)
    match.strangers += [file for file, position in match.tracked if position and position.generation in wrong]
    match.tracked = [pair for pair in match.tracked if not pair[1] or pair[1].generation not in wrong]
    for name, position in positions.items():
        if name not in seen - wrong and position.state != "gone" and not listing.hides(position.path):
            match.orphans[name] = position
    return match


def _verdict(file: LogFile, position: FilePosition, probe: Probe) -> Verdict:
    if as_it_was(file, position):
        return Verdict.SAME
    return probe.compare(file, position)


class _KnownFiles:
    """Generations by the inode that held them. A disk may come back under another number, with nothing else changed."""

    def __init__(self, positions: Iterable[FilePosition]) -> None:
        ranked = sorted(positions, key=lambda position: position.state != "gone")
        self._by_key = {(position.device, position.inode): position for position in ranked}
        self._by_name = {(position.path, position.inode): position for position in ranked}

    def of(self, file: LogFile) -> FilePosition | None:
        """The generation that a file held."""
        position = self._by_key.get(file.key) or self._by_name.get((file.path, file.inode))
        return position if position and (position.device == file.device or as_it_was(file, position)) else None


def _once(files: Iterable[LogFile], known: _KnownFiles) -> list[LogFile]:
    """Each file once, however many links lead to it: by its known path if that is one of them."""
    found: dict[tuple[int, int], LogFile] = {}
    for file in files:
        position = known.of(file)
        if file.key not in found or (position and position.path == file.path):
            found[file.key] = file
    return list(found.values())


def adopt(match: Match, positions: Mapping[str, FilePosition], probe: Probe) -> None:
    """Find orphans again among strangers, by content; strangers that the glob names are new generations otherwise."""
    gone = [position for position in positions.values() if position.state == "gone" and position.head_length == HEAD]
    lost = [position for position in match.orphans.values() if position.state == "live" and position.head_length]
    index: dict[tuple[int, str], dict[str, FilePosition]] = {}
    for position in [*lost, *gone]:
        index.setdefault((position.head_length, position.head_hash), {})[position.generation] = position
    lengths = sorted({length for length, _ in index})
    held: set[str] = set()
    for file in sorted(match.strangers, key=lambda file: (may_be_packed(file.path), not file.matched, file.path)):
        alike = _alike(file, index, lengths, probe) if file.matched or lost else []
        if file.size == 0 or (not file.matched and not alike):
            continue
        if not probe.settled(file):
            match.waiting.append(file)
            held.update(position.generation for position in alike)
            continue
        same = _same(file, alike, probe)
        if same is not None:
            match.tracked.append((file, same))
            match.orphans.pop(same.generation, None)
            del index[(same.head_length, same.head_hash)][same.generation]
            continue
        _new(file, alike, match)
    for name in held & match.orphans.keys():
        del match.orphans[name]


def _alike(
    file: LogFile, index: Mapping[tuple[int, str], Mapping[str, FilePosition]], lengths: Iterable[int], probe: Probe
) -> list[FilePosition]:
    head = probe.head(file) if index else None
    if head is None:
        return []
    found = (index.get((length, fingerprint(head[:length])), {}) for length in lengths if length <= len(head))
    return [position for group in found for position in group.values()]


def _same(file: LogFile, alike: Iterable[FilePosition], probe: Probe) -> FilePosition | None:
    # The least offset first: of two that match, the one that reads more loses nothing.
    proven = [item for item in alike if item.offset >= ENOUGH and item.anchor_length]
    proven.sort(key=lambda item: item.offset)
    return next((item for item in proven if probe.same(file, item)), None)


def _new(file: LogFile, alike: Iterable[FilePosition], match: Match) -> None:
    """Read a file from its beginning; an orphan of which too little was known goes on in it, without an alarm."""
    packed = may_be_packed(file.path)
    delta = [
        position for position in alike
        if position.generation in match.orphans and position.offset < ENOUGH and (packed or file.size >= position.size)
    ]  # fmt: skip
    covered = [position for position in delta if position.size <= position.head_length] or delta[:1]
    for position in covered:
        del match.orphans[position.generation]
        match.retired.append(position)
    if file.matched or covered:
        match.tracked.append((file, None))
