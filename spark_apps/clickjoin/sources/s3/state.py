"""What is known of a bucket's objects: which have been planned, as few bytes as that takes, for the journal.

An object is known by eight bytes of its key, ETag and time of last write. They are kept in pages; a page goes once all
of its objects were last written before the horizon. What was written before that, and is in no page, counts as known.
The horizon lies `lookback` behind the oldest object that is not planned yet, and behind the last look at everything: so
an object is passed over unread only if it shows up for the first time later than `lookback` after its own time.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any

from clickjoin.model.split import SourceOffset, Split
from clickjoin.sources.s3.bucket import StoredObject

PAGE = 512  # objects
_CURSOR, _PAGES, _ID = "cursor", "known/", 8


@dataclass(frozen=True)
class Part:
    """An object of which the bytes before `offset` have been planned."""

    found: StoredObject
    offset: int = 0

    def plain(self) -> list[Any]:
        """As plain data."""
        return [*self.found, self.offset]

    @classmethod
    def of(cls, plain: list[Any]) -> Part:
        """From plain data."""
        return cls(StoredObject(*plain[:-1]), plain[-1])


@dataclass(frozen=True)
class Cursor:
    """How far the whole source has come; all times in seconds since 1970, by the store's clock.

    `horizon`: what was written before it is known. `full`: the last look at everything, 0 while something that it found
    is not planned. `written`: the newest object. `forgotten`: about how many objects are known by the horizon alone;
    `checked`: the last look at everything that it was corrected by. `parts`: objects that are planned in part.
    `marks`: of each folder, the key up to which all are known.
    """

    horizon: int = 0
    full: int = 0
    written: int = 0
    forgotten: int = 0
    checked: int = 0
    parts: tuple[Part, ...] = ()
    marks: Mapping[str, str] = field(default_factory=dict)

    def to_offset(self) -> SourceOffset:
        """As an offset for the engine to keep."""
        return SourceOffset(
            _CURSOR, vars(self) | {"parts": [part.plain() for part in self.parts], "marks": dict(self.marks)}
        )

    @classmethod
    def of(cls, offset: SourceOffset | None) -> Cursor:
        """What an offset says."""
        if offset is None:
            return cls()
        payload = dict(offset.payload)
        return cls(**payload | {"parts": tuple(Part.of(part) for part in payload["parts"])})


@dataclass(frozen=True)
class Ids:
    """A page of objects that have been planned: `newest` is the newest time of last write."""

    newest: int = 0
    ids: bytes = b""

    def __len__(self) -> int:
        return len(self.ids) // _ID

    def each(self) -> Iterable[bytes]:
        """The ids, one by one."""
        return (self.ids[at : at + _ID] for at in range(0, len(self.ids), _ID))


class Ledger:
    """What offsets say of the objects. Lengths in objects."""

    def __init__(self, offsets: Mapping[str, SourceOffset]) -> None:
        self.offsets = dict(offsets)
        self.cursor = Cursor.of(offsets.get(_CURSOR))
        self.pages = {name: _page(offset) for name, offset in offsets.items() if name.startswith(_PAGES)}
        self.ids = {one for page in self.pages.values() for one in page.each()}

    def is_of(self, offsets: Mapping[str, SourceOffset]) -> bool:
        """Whether this is what these offsets say."""
        own = self.offsets
        return len(own) == len(offsets) and all(own.get(name) is offset for name, offset in offsets.items())

    def has(self, found: StoredObject, bucket: str) -> bool:
        """Whether an object is in a page."""
        return id_of(found, bucket) in self.ids

    def knows(self, found: StoredObject, bucket: str) -> bool:
        """Whether an object has been planned, in part or whole, or was forgotten."""
        return found.written < self.cursor.horizon or self.has(found, bucket)

    def after(self, bucket: str, taken: Iterable[StoredObject], cursor: Cursor) -> list[SourceOffset]:
        """Offsets that change once these objects are planned, and nothing but pages' ends is before the horizon."""
        old = {name: page for name, page in self.pages.items() if len(page) and page.newest < cursor.horizon}
        forgotten = cursor.forgotten + sum(map(len, old.values()))
        changed = dict.fromkeys(old, Ids())
        pages = {**self.pages, **changed}
        fresh = list(taken)
        while fresh:
            name = next((name for name, page in pages.items() if len(page) < PAGE), f"{_PAGES}{len(pages)}")
            page = pages.get(name, Ids())
            some, fresh = fresh[: PAGE - len(page)], fresh[PAGE - len(page) :]
            newest = max(page.newest, *(one.written for one in some))
            pages[name] = changed[name] = Ids(newest, page.ids + b"".join(id_of(one, bucket) for one in some))
        written = max((cursor.written, *(one.written for one in taken)))
        whole = replace(cursor, forgotten=forgotten, written=written)
        return [whole.to_offset(), *(_offset(name, page) for name, page in changed.items())]


def id_of(found: StoredObject, bucket: str) -> bytes:
    """What an object is known by: the same only while its content is."""
    text = f"{bucket}/{found.key}\0{found.etag}\0{found.written}"
    return blake2b(text.encode("utf-8", "surrogateescape"), digest_size=_ID).digest()


def _page(offset: SourceOffset) -> Ids:
    return Ids(offset.payload["newest"], b64decode(offset.payload["ids"]))


def _offset(name: str, page: Ids) -> SourceOffset:
    return SourceOffset(name, {"newest": page.newest, "ids": b64encode(page.ids).decode()})


@dataclass(frozen=True)
class ObjectSplit:
    """Bytes [start, end) of one object: whole records only. `end` -1: to its end (of what has to be unpacked)."""

    partition: str
    path: str
    key: str
    etag: str
    written: int
    size: int
    start: int
    end: int
    events: int
    bytes: int

    @classmethod
    def of(cls, split: Split) -> ObjectSplit:
        """What a split says."""
        return cls(partition=split.partition, path=split.path, events=split.events, bytes=split.bytes, **split.payload)

    def to_split(self) -> Split:
        """As a split for the engine to plan."""
        known = dict(vars(self))
        partition, path, events, size = (known.pop(name) for name in ("partition", "path", "events", "bytes"))
        return Split(partition, known, path, events, size)
