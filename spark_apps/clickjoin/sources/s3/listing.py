"""Which objects a glob of keys names, found by few lists: folder by folder, without those of old dates."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import date
from typing import Protocol

from clickjoin.sources.files.allowed_folders import base_of
from clickjoin.sources.files.listing import names
from clickjoin.sources.s3.bucket import Page, StoredObject

_AT_ONCE = 8  # folders
_WILD = re.compile(r"[*?[]")
_DATE = re.compile(r"(?<!\d)((?:19|20)\d\d)(?:[^0-9]{0,7}(\d\d)(?:[^0-9]{0,5}(\d\d))?)?(?!\d)")


class Lists(Protocol):
    """What this needs of a bucket."""

    def pages(self, prefix: str, delimiter: str = "", after: str = "") -> Iterator[Page]:
        """Objects below a prefix in the order of their keys."""
        ...


@dataclass
class Look:
    """What a list found: objects that were wanted, by key; of each folder the last key, and the store's time before."""

    objects: dict[str, StoredObject] = field(default_factory=dict)
    last: dict[str, str] = field(default_factory=dict)
    at: int = 0
    requests: int = 0


@dataclass(frozen=True)
class Glob:
    """A glob over keys: the folder that it begins at ("" or ending in /), and its parts below."""

    base: str
    parts: tuple[str, ...]

    @classmethod
    def of(cls, key: str) -> Glob:
        """From the text after the bucket."""
        base, parts = base_of(f"/{key}")
        return cls(f"{base.strip('/')}/".lstrip("/"), parts)

    def is_before(self, folder: str, since: date) -> bool:
        """Whether a folder's name, below the base, holds a date, a month or a year that is over before a date."""
        return is_before(folder[len(self.base) :], since)

    def names(self, key: str) -> bool:
        """Whether it names a key."""
        return key.startswith(self.base) and _fits(tuple(key[len(self.base) :].split("/")), self.parts)


def look(
    bucket: Lists,
    glob: Glob,
    wanted: Callable[[StoredObject], bool],
    since: date | None = None,
    after: Mapping[str, str] | None = None,
) -> Look:
    """List what a glob names. `since`: folders of older dates are passed over; `after`: by folder, a key to go on from.

    Objects without a byte are none. Errors: those of `pages`.
    """
    found, marks = Look(), after or {}

    def read(folder: str) -> None:
        _folder(bucket, glob, folder, wanted, found, marks.get(folder, ""))

    def skips(folder: str) -> bool:
        return since is not None and glob.is_before(folder, since)

    folders = list(_folders(bucket, glob.base, glob.parts, skips, found))
    with ThreadPoolExecutor(min(len(folders), _AT_ONCE) or 1) as pool:
        for _ in pool.map(read, folders):
            pass
    return found


def _folder(
    bucket: Lists, glob: Glob, folder: str, wanted: Callable[[StoredObject], bool], found: Look, after: str
) -> None:
    deep = "**" in glob.parts
    prefix = folder if deep else folder + literal(glob.parts[-1])
    for page in bucket.pages(prefix, "" if deep else "/", after):
        _note(found, page)
        for one in page.objects:
            if one.size and glob.names(one.key) and wanted(one):
                found.objects[one.key] = one
        if page.objects:
            found.last[folder] = page.objects[-1].key


def _folders(
    bucket: Lists, folder: str, parts: Sequence[str], skips: Callable[[str], bool], found: Look
) -> Iterator[str]:
    """Folders whose objects the last part names, or all below which it does."""
    if len(parts) == 1 or parts[0] == "**":
        yield folder
        return
    for below in _below(bucket, folder, parts[0], found):
        if not skips(below):
            yield from _folders(bucket, below, parts[1:], skips, found)


def _below(bucket: Lists, folder: str, part: str, found: Look) -> Iterable[str]:
    if not _WILD.search(part):
        return [f"{folder}{part}/"]
    below: list[str] = []
    for page in bucket.pages(folder + literal(part), "/"):
        _note(found, page)
        below += [one for one in page.folders if names(part, one[len(folder) : -1])]
    return below


def _note(found: Look, page: Page) -> None:
    found.at, found.requests = min(found.at or page.at, page.at), found.requests + 1


def literal(part: str) -> str:
    """What all that a part of a glob names begins with."""
    return _WILD.split(part, maxsplit=1)[0]


def is_before(folder: str, since: date) -> bool:
    """Whether a folder's name holds a date, a month or a year that is over before a date."""
    found = list(_DATE.finditer(folder))
    if not found:
        return False
    whole = next((one for one in found if one[3]), found[-1])
    own = tuple(int(text) for text in whole.groups() if text)
    return own < (since.year, since.month, since.day)[: len(own)]


def _fits(key: tuple[str, ...], parts: tuple[str, ...]) -> bool:
    if not parts:
        return not key
    if parts[0] == "**":
        shown = next((at for at, name in enumerate(key) if not names("*", name)), len(key))
        return any(_fits(key[at:], parts[1:]) for at in range(shown + 1))
    return bool(key) and names(parts[0], key[0]) and _fits(key[1:], parts[1:])
