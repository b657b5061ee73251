"""How far a file has been read, and what a batch reads of it: what this source's offsets and splits say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace

from clickjoin.kernel.file_bytes import Proof
from clickjoin.model.split import Problem, SourceOffset, SourcePlan, Split


@dataclass(frozen=True)
class FilePosition:
    """How far one generation of one file has been planned. Lengths in bytes (of a .gz unpacked; `size` as on disk).

    `generation` names the content, not the file: it stays the same through a rename. `head_*` is a fingerprint of the
    first bytes, `anchor_*` one of the bytes just before `offset`: together they prove that what lies in a file up
    to `offset` is likely what was read, and `prints` (see `digests.py`) prove it: digests of all of it; of a .gz that
    is done, of the packed file. `state` is `live`, `done` (a .gz read to its end) or `gone` (deleted).

    `mtime_ns` is the age of the oldest unread byte; `written_ns` and `changed_ns` (mtime and ctime) say with `size`
    whether the file is as it was at the last look. `proven`: so many bytes have been compared with `prints` since.
    """

    generation: str
    path: str
    device: int
    inode: int
    offset: int
    size: int
    mtime_ns: int
    head_length: int
    head_hash: str
    anchor_length: int
    anchor_hash: str
    state: str = "live"
    written_ns: int = 0
    changed_ns: int = 0
    proven: int = 0
    prints: str = ""

    @classmethod
    def of(cls, offset: SourceOffset) -> FilePosition:
        """What an offset of this source says."""
        return cls(offset.partition, **offset.payload)

    def to_offset(self) -> SourceOffset:
        """As an offset for the engine to keep."""
        return SourceOffset(self.generation, {name: getattr(self, name) for name in _POSITION})

    def rewound(self, split: FileSplit) -> FilePosition:
        """The position back where a lost split began: should the file come back, its bytes are read after all."""
        if self.offset <= split.start:
            return self
        return replace(
            self, offset=split.start, state="gone", anchor_length=0, anchor_hash="", size=split.start, proven=0,
            prints=split.before,
        )  # fmt: skip


@dataclass(frozen=True)
class FileSplit:
    """Bytes [start, end) of one generation: whole records only. `end` -1 means to the end (.gz, which cannot be split).

    `head_*` and `anchor_*` (of the bytes just before `end`) let a reader prove that it reads the planned bytes. In a
    file other than the one planned (`device`, `inode`) they prove too little: there `root` does, the digest of all up
    to `end` (of the packed file, where `end` is -1), as `before` does of all up to `start`.
    """

    generation: str
    path: str
    start: int
    end: int
    head_length: int
    head_hash: str
    anchor_length: int
    anchor_hash: str
    events: int  # estimated from the length of a record
    device: int = 0
    inode: int = 0
    before: str = ""
    root: str = ""

    @classmethod
    def of(cls, split: Split) -> FileSplit:
        """What a split of this source says."""
        return cls(split.partition, split.path, events=split.events, **split.payload)

    def to_split(self) -> Split:
        """As a split for the engine to plan."""
        payload = {name: getattr(self, name) for name in _SPLIT}
        return Split(self.generation, payload, self.path, self.events, max(self.end - self.start, 0))


def ends_of(split: Split) -> tuple[int, int]:
    """The bytes [start, end) of a split of files or objects; `end` -1: to its end."""
    return split.payload["start"], split.payload["end"]


_POSITION = tuple(item.name for item in fields(FilePosition) if item.name != "generation")
_SPLIT = tuple(item.name for item in fields(FileSplit) if item.name not in ("generation", "path", "events"))


@dataclass(frozen=True)
class FilePlan:
    """A plan in this source's own terms; see model.split.SourcePlan."""

    splits: tuple[FileSplit, ...] = ()
    positions: tuple[FilePosition, ...] = ()
    backlog_bytes: int = 0
    backlog_events: int = 0
    problems: tuple[Problem, ...] = ()
    unfinished: tuple[FileSplit, ...] = ()

    def to_source_plan(self) -> SourcePlan:
        """As a plan for the engine."""
        return SourcePlan(
            tuple(split.to_split() for split in self.splits),
            tuple(position.to_offset() for position in self.positions),
            self.backlog_bytes,
            self.backlog_events,
            self.problems,
            unfinished=tuple(split.to_split() for split in self.unfinished),
        )


@dataclass
class KnownPositions:
    """Offsets as positions; those that are as they were at the last look are not taken apart again."""

    known: dict[str, tuple[SourceOffset, FilePosition]] = field(default_factory=dict)

    def of(self, offsets: Mapping[str, SourceOffset]) -> dict[str, FilePosition]:
        """Positions by generation."""
        known = self.known
        self.known = {
            name: pair if (pair := known.get(name)) and pair[0] is offset else (offset, FilePosition.of(offset))
            for name, offset in offsets.items()
        }
        return {name: position for name, (_, position) in self.known.items()}


def split_before(position: FilePosition, start: int) -> FileSplit:
    """The bytes from a place to a position as a split, to look at what was read there."""
    return FileSplit(
        position.generation, position.path, start, position.offset, position.head_length, position.head_hash,
        position.anchor_length, position.anchor_hash, 1, position.device, position.inode,
    )  # fmt: skip


def splits_of(splits: Iterable[Split]) -> list[FileSplit]:
    """What splits of this source say."""
    return [FileSplit.of(split) for split in splits]


def proof_of(item: FilePosition | FileSplit) -> Proof:
    """What a position or a split says of its file. The anchor of a split to the file's end lies before its start."""
    if isinstance(item, FilePosition):
        offset = item.offset
    else:
        offset = item.start if item.end < 0 else item.end
    return Proof(item.head_length, item.head_hash, offset, item.anchor_length, item.anchor_hash)
