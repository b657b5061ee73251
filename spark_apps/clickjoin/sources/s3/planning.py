"""What a batch reads of objects that are known to be unread: oldest first, up to its budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from clickjoin.kernel.packed import SUFFIX, BrokenFile, is_packed, may_be_packed, unpack
from clickjoin.kernel.parse.csv_lines import CsvForm
from clickjoin.kernel.remote_file import Handle, Held, length_of, pread
from clickjoin.model.errors import SourceMoved
from clickjoin.model.split import Budget, Problem
from clickjoin.sources.files.line_end import cut, records_in
from clickjoin.sources.s3.bucket import StoredObject
from clickjoin.sources.s3.state import ObjectSplit, Part, id_of

SAMPLE = 1 << 16
PARQUET = ".parquet"


class Kind(NamedTuple):
    """Bytes unpacked for one that is stored, and mean bytes of a record."""

    times: float = 1.0
    mean: float = 200.0


_UNSEEN = {PARQUET: Kind(8.0)}  # its rows as JSON lines; a look at them is a read of its end and of all columns


class Kinds:
    """What is known of each kind of object; a kind is learned once."""

    def __init__(self) -> None:
        self._known = dict(_UNSEEN)

    def of(self, path: str, form: CsvForm | None, opened: Callable[[], Handle]) -> Kind:
        """The kind of an object; `opened` is asked for what it holds where it is the first of its kind."""
        suffix = next((suffix for suffix in SUFFIX.values() if path.endswith(suffix)), "")
        if suffix not in self._known:
            self._known[suffix] = _learn(opened(), path, form)
        return self._known[suffix]


def _learn(file: Handle, path: str, form: CsvForm | None) -> Kind:
    data = pread(file, SAMPLE, 0)
    held = Held(data)
    plain = _unpacked(held) if is_packed(held, path) else data
    records = records_in(plain, form.separator) if form and form.multiline else plain.count(b"\n")
    mean = len(plain) / max(records, 1)
    times = 1.0 if plain is data else max(len(plain) / len(data), 1.0)
    return Kind(times, max(mean, 1.0) if records or length_of(file) <= SAMPLE else 200.0)


def _unpacked(held: Held) -> bytes:
    """All that the first bytes of a packed object unpack to."""
    blocks: list[bytes] = []
    with suppress(BrokenFile):  # where the sample ends
        blocks.extend(unpack(held, SAMPLE))
    return b"".join(blocks)


def is_whole(path: str, form: CsvForm | None) -> bool:
    """Whether an object is read by one task from its beginning, and so never planned in part."""
    return may_be_packed(path) or bool(form and form.multiline)


LEAST_CUT = 8 << 20  # shorter objects are never planned in part


@dataclass(frozen=True)
class Reads:
    """How a source's objects are read: its bucket, how a path's CSV is written, and an object opened for planning."""

    bucket: str
    form: Callable[[str], CsvForm | None]
    opened: Callable[[StoredObject], Handle]

    def path(self, found: StoredObject) -> str:
        """An object as people name it."""
        return f"s3://{self.bucket}/{found.key}"


@dataclass
class Selection:
    """What a batch takes. `begun`: objects that it is the first to take of; `parts`: what goes on in the next one.

    `left`: not begun; `gone`: not there any more.
    """

    splits: list[ObjectSplit] = field(default_factory=list)
    begun: list[StoredObject] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    left: list[StoredObject] = field(default_factory=list)
    gone: list[StoredObject] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    backlog_bytes: int = 0
    backlog_events: float = 0


def take(
    parts: Iterable[Part], waiting: Iterable[StoredObject], budget: Budget, kinds: Kinds, reads: Reads
) -> Selection:
    """Take of objects begun, then of others in the order of their last write, until one does not fit.

    A batch takes one record, or one object that is not cut, whatever its budget. Errors: those of `opened`'s reads.
    """
    taker = _Selector(budget, kinds, reads)
    oldest = sorted(waiting, key=lambda found: (found.written, found.key))
    for part in [*parts, *(Part(found) for found in oldest)]:
        try:
            taker.take(part)
        except SourceMoved as error:
            taker.drop(part, str(error))
    return taker.taken


class _Selector:
    """Takes objects one after the other while there is room; `full`: nothing more is taken."""

    def __init__(self, budget: Budget, kinds: Kinds, reads: Reads) -> None:
        self.taken, self.full = Selection(), False
        self._kinds, self._reads = kinds, reads
        self._bytes, self._events = float(budget.max_bytes), float(budget.max_events)

    def take(self, part: Part) -> None:
        """Take what fits of an object, and leave the rest."""
        path = self._reads.path(part.found)
        kind = self._kinds.of(path, self._reads.form(path), lambda: self._reads.opened(part.found))
        end = part.offset if self.full else self._end(part, path, kind)
        if end > part.offset:
            self._split(part, path, end, kind)
        self.full = self.full or end < part.found.size
        if end < part.found.size:
            self._leave(Part(part.found, end), kind)

    def drop(self, part: Part, why: str) -> None:
        """Note that an object is not there any more as it was listed."""
        path, length = self._reads.path(part.found), part.found.size - part.offset
        detail = f"{why}: {length} bytes of it were not read"
        self.taken.problems.append(Problem("lost-tail", path, detail, part.offset, length))
        self.taken.gone.append(part.found)

    def _end(self, part: Part, path: str, kind: Kind) -> int:
        """How far an object is read: to its end, to that of a record, or not at all."""
        found, first = part.found, not self.taken.splits
        size = (found.size - part.offset) * kind.times
        uncut = is_whole(path, self._reads.form(path)) or found.size < LEAST_CUT
        if (size <= self._bytes and size / kind.mean <= self._events) or (first and uncut):
            return found.size
        if uncut:
            return part.offset
        room = int(min(self._bytes, self._events * kind.mean))
        return cut(self._reads.opened(found), part.offset, found.size, room, None, first, closed=True).end

    def _split(self, part: Part, path: str, end: int, kind: Kind) -> None:
        found, size = part.found, (end - part.offset) * kind.times
        events = max(round(size / kind.mean), 1)
        self._bytes, self._events = self._bytes - size, self._events - events
        self.taken.splits.append(ObjectSplit(
            id_of(found, self._reads.bucket).hex(), path, found.key, found.etag, found.written, found.size,
            part.offset, -1 if may_be_packed(path) else end, events, max(int(size), 1),
        ))  # fmt: skip
        if not part.offset:
            self.taken.begun.append(found)

    def _leave(self, part: Part, kind: Kind) -> None:
        size = (part.found.size - part.offset) * kind.times
        self.taken.backlog_bytes += int(size)
        self.taken.backlog_events += size / kind.mean
        if part.offset:
            self.taken.parts.append(part)
        else:
            self.taken.left.append(part.found)
