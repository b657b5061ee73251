"""Objects that a source knows of and has not planned: found by looks that are few, short where nothing is old.

A look lists folders whose names hold no date older than `lookback`; one at everything, each `relist`, finds what came
late. Where keys only grow (`ordered`), a look goes on after the last key of each folder.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from heapq import nsmallest
from threading import Lock
from typing import TYPE_CHECKING

from clickjoin.model.split import Problem
from clickjoin.sources.s3.bucket import StoredObject
from clickjoin.sources.s3.listing import Glob, Lists, Look, look
from clickjoin.sources.s3.state import Cursor, Ledger, Part

if TYPE_CHECKING:
    from clickjoin.config import Files

MOST = 100_000  # objects that are held at a time
_LOOKBACK, _RELIST = 2 * 86400.0, 600.0  # seconds, where the pipeline's file names none
_AGAIN = 5.0  # seconds, while some wait
_PACE = 0.1  # seconds between two looks for each request that one takes beyond the first few
_FEW = 4


@dataclass(frozen=True)
class Beyond:
    """What waits and is not held: objects, their bytes, and the least time of last write."""

    count: int = 0
    bytes: int = 0
    oldest: int = 0


class Waiting:
    """What waits of one glob, by key."""

    def __init__(self, bucket: Lists, name: str, glob: Glob, source: Files, now: Callable[[], float]) -> None:
        self.objects: dict[str, StoredObject] = {}
        self.beyond = Beyond()
        self._bucket, self._name, self._glob, self._source, self._now = bucket, name, glob, source, now
        self._lookback = _LOOKBACK if source.lookback is None else source.lookback
        self._relist = _RELIST if source.relist is None else source.relist
        self._full = self._old = self._missed = 0
        self._lock = Lock()
        self._any = False
        self._marks: dict[str, str] = {}
        self._next_look = self._paced = 0.0

    def look(self, ledger: Ledger) -> None:
        """Bring it up to date. Errors: those of the store."""
        self.objects = {key: one for key, one in self.objects.items() if not ledger.knows(one, self._name)}
        clock = time.monotonic()
        full = self._is_full_due(ledger)
        if clock < (self._next_look if self.objects else self._paced) and not full:
            return
        found = self._everything(ledger) if full else self._recent(ledger)
        self._paced = clock + _PACE * (found.requests - _FEW)
        self._next_look = max(clock + _AGAIN, self._paced)
        self._any = self._any or bool(found.objects)
        self._marks |= found.last

    def _is_full_due(self, ledger: Ledger) -> bool:
        if self.beyond.count and len(self.objects) < MOST // 2:
            return True
        return self._now() - max(self._full, ledger.cursor.full) >= self._relist

    def _everything(self, ledger: Ledger) -> Look:
        old = 0

        def wanted(found: StoredObject) -> bool:
            nonlocal old
            if not ledger.knows(found, self._name):
                return True
            if found.written < ledger.cursor.horizon and not ledger.has(found, self._name):
                with self._lock:
                    old += 1
            return False

        found = look(self._bucket, self._glob, wanted)
        self._full, self._old = found.at or int(self._now()), old
        self._missed = max(old - ledger.cursor.forgotten, 0)
        self.objects, self.beyond = found.objects, Beyond()
        self._bound()
        return found

    def _recent(self, ledger: Ledger) -> Look:
        def wanted(found: StoredObject) -> bool:
            return not ledger.knows(found, self._name)

        after = {**ledger.cursor.marks, **self._marks} if self._source.ordered else None
        found = look(self._bucket, self._glob, wanted, self._since(), after)
        self.objects |= found.objects
        self._bound()
        return found

    def _bound(self) -> None:
        """Hold the oldest; the rest is listed again later."""
        if len(self.objects) > MOST:
            kept = nsmallest(MOST, self.objects.values(), key=lambda one: (one.written, one.key))
            held = {one.key: one for one in kept}
            self.beyond = _with(self.beyond, [one for key, one in self.objects.items() if key not in held])
            self.objects = held

    def drop(self, gone: Iterable[StoredObject]) -> None:
        """Forget objects that are not there any more as they were listed."""
        for one in gone:
            if self.objects.get(one.key) == one:
                del self.objects[one.key]

    def replaced(self, found: StoredObject) -> bool:
        """Whether a list has shown another object in the place of one that is read in part."""
        now = self.objects.get(found.key)
        return now is not None and now != found

    def cursor(self, before: Cursor, left: Sequence[StoredObject], parts: tuple[Part, ...]) -> Cursor:
        """How far the source has come once all but these objects are planned."""
        full = max(self._full, before.full)
        checked = max(self._full, before.checked)
        forgotten = min(before.forgotten, self._old) if checked > before.checked else before.forgotten
        open_ = [one.written for one in left] + [part.found.written for part in parts]
        open_ += [self.beyond.oldest] if self.beyond.count else []
        horizon = max(before.horizon, min([full, *open_]) - int(self._lookback))
        done = not left and not self.beyond.count
        marks = self._kept_marks(before) if self._source.ordered and done else before.marks
        return replace(
            before, horizon=horizon, full=full if done else 0, checked=checked, forgotten=forgotten, parts=parts,
            marks=marks,
        )  # fmt: skip

    def _kept_marks(self, before: Cursor) -> dict[str, str]:
        """Marks of the folders that looks go to."""
        return {
            folder: key for folder, key in {**before.marks, **self._marks}.items()
            if not self._glob.is_before(folder, self._since())
        }  # fmt: skip

    def _since(self) -> date:
        return datetime.fromtimestamp(self._now() - self._lookback, UTC).date()

    def problems(self, ledger: Ledger, parts: Sequence[Part]) -> Iterable[Problem]:
        """What people should know of the last looks."""
        gone = [part for part in ledger.cursor.parts if part not in parts]
        for part in gone:
            path, length = f"s3://{self._name}/{part.found.key}", part.found.size - part.offset
            detail = (
                f"{path} was written again with {length} bytes unread; what it holds now is read from its beginning"
            )
            yield Problem("rewritten", path, detail, part.offset, length)
        if self._missed:
            at = datetime.fromtimestamp(ledger.cursor.horizon, UTC)
            detail = (
                f"about {self._missed} objects showed up more than `lookback` after they were last written, before "
                f"{at:%Y-%m-%d %H:%M:%S}Z, and are not read; copy them to new keys, and raise source.lookback"
            )
            yield Problem("late-object", self._source.path, detail)
        if not self._any and not ledger.offsets:
            detail = f"no object matches {self._source.path}; correct the source's path"
            yield Problem("missing", self._source.path, detail)


def _with(beyond: Beyond, more: Sequence[StoredObject]) -> Beyond:
    oldest = min([one.written for one in more] + ([beyond.oldest] if beyond.count else []))
    return Beyond(beyond.count + len(more), beyond.bytes + sum(one.size for one in more), oldest)
