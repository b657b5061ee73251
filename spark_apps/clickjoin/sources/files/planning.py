"""What a batch reads of a glob of growing files, and what is reported of those that are gone."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import NamedTuple

from clickjoin.kernel.file_bytes import HEAD, AllowedFolders, fingerprint, opened, read_at
from clickjoin.model.errors import SourceError
from clickjoin.model.split import Budget, Problem
from clickjoin.sources.files.digests import after, root
from clickjoin.sources.files.identity import Match, adopt, follow, unread
from clickjoin.sources.files.line_end import Ending, cut, cut_records
from clickjoin.sources.files.listing import Listing, LogFile, list_files, unreadable
from clickjoin.sources.files.probe import AT_REST_SECONDS, FileProbe, FormOf, Work, no_csv
from clickjoin.sources.files.proving import Doubt, Memory, as_it_was, carried, doubt, rewritten, settled, span
from clickjoin.sources.files.share import FileShare, spend, waves
from clickjoin.sources.files.state import FilePlan, FilePosition, FileSplit


class Piece(NamedTuple):
    """The last bytes that are taken, and digests of all up to them; of a .gz, of all of it as it lies on disk."""

    anchor: bytes
    prints: str


class Replaced(Exception):
    """The path leads to another file than the one that was listed, or to other bytes than had been read of it."""


def piece_of(
    work: Work, room: int, limit: int | None, must: bool, *, keep: bool, fence: AllowedFolders | None
) -> tuple[FileShare, Piece]:
    """Take at most so many bytes and records, as in `cut`; without `keep` nothing is digested.

    Errors: OSError, Replaced, SourceError where the file is shorter than it was.
    """
    position, want = work.position, work.want
    with opened(work.file.path, fence) as fd:
        stat = os.fstat(fd)
        if (stat.st_dev, stat.st_ino) != work.file.key:
            raise Replaced
        if want.whole:
            prints = after(fd, "", 0, work.file.size, work.file.path) if keep else ""
            return FileShare(want.unread, events_of(want.unread, want.mean), False), Piece(b"", prints or "")
        ending = _ending(fd, work, room, limit, must)
        length, prints = ending.end - position.offset, ""
        anchor = read_at(fd, max(ending.end - HEAD, 0), min(HEAD, ending.end)) if length else b""
        if keep and length:
            prints = after(fd, position.prints, position.offset, ending.end, work.file.path)
    if prints is None:
        raise Replaced
    records = events_of(length, want.mean) if ending.records is None else ending.records
    return FileShare(length, records, ending.more), Piece(anchor, prints)


def _ending(fd: int, work: Work, room: int, limit: int | None, must: bool) -> Ending:
    start, size = work.position.offset, work.file.size
    if work.quoted:
        return cut_records(fd, start, size, room, limit, must, work.closed, work.quoted, work.file.path)
    return cut(fd, start, size, room, limit, must, work.closed)


def events_of(length: int, mean: float) -> int:
    """About how many records so many bytes are; at least one if there are any."""
    return max(round(length / max(mean, 1)), 1) if length else 0


def root_of(prints: str, length: int) -> str:
    """What a split says of all before a place; empty where nothing was digested."""
    return root(prints, length) if prints else ""


LAST_BYTES = 4096  # before half a line, whose records tell about when it is of
STALE_SECONDS = 60  # half a line that has not grown for this long is worth a word


def make_plan(
    pattern: str, positions: Mapping[str, FilePosition], budget: Budget, now: float, memory: Memory | None = None, *,
    keep: bool = True, fence: AllowedFolders | None = None, csv: FormOf = no_csv,
) -> FilePlan:  # fmt: skip
    """Plan a batch of the files that a glob names. `now` in seconds since 1970; `csv`: how a file's CSV is written.

    A file that is as it was, with nothing unread, is not opened. A folder that does not exist changes nothing. Without
    `keep`, positions and splits get no digests, and what is taken is not read.
    """
    memory = memory or Memory()
    known = memory.over(positions)
    probe = FileProbe(now, fence, memory.lot, csv)
    listing, match = _survey(pattern, known, probe)
    if listing.missing:
        return FilePlan(problems=listing.problems)
    draft = _Draft(known, probe, keep)
    draft.problems.extend(listing.problems)
    if not positions and not any(file.matched for file in listing.files):
        draft.problems.append(Problem("missing", pattern, f"no file matches {pattern}; correct the source's path"))
    for position in [*match.retired, *match.orphans.values()]:
        draft.drop(position, quiet=position in match.retired)
    works = [work for file, position in match.tracked if (work := draft.look(file, position))]
    works.sort(key=lambda work: (work.position.mtime_ns, work.file.path))
    draft.wait_for(match.waiting)
    draft.take(works, budget)
    return draft.plan(positions, memory)


def _survey(pattern: str, positions: Mapping[str, FilePosition], probe: FileProbe) -> tuple[Listing, Match]:
    inodes = {position.inode for position in positions.values()}
    listing = list_files(pattern, inodes, fence=probe.fence)
    match = follow(listing, positions, probe)
    if match.orphans and not listing.missing:
        # Renamed while the folder was scanned, or copied to a name that the glob does not cover: look at everything.
        listing = list_files(pattern, inodes, everything=True, fence=probe.fence)
        probe.problems.clear()
        match = follow(listing, positions, probe)
    adopt(match, positions, probe)
    return listing, match


@dataclass
class _Draft:
    """A plan in the making."""

    positions: Mapping[str, FilePosition]
    probe: FileProbe
    keep: bool
    splits: list[FileSplit] = field(default_factory=list)
    changed: dict[str, FilePosition] = field(default_factory=dict)
    better: dict[str, FilePosition] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    unfinished: list[FileSplit] = field(default_factory=list)
    backlog_bytes: int = 0
    backlog_events: float = 0

    def drop(self, position: FilePosition, *, quiet: bool) -> None:
        """Mark a generation as gone, and tell of what was unread in it, unless it is read under another name."""
        prints = "" if position.state == "done" else position.prints
        self.changed[position.generation] = replace(position, state="gone", prints=prints)
        if position.generation in self.probe.rewritten and not quiet:
            self.problems.append(rewritten(position))
        if unread(position) and not quiet:
            length = max(position.size - position.offset, 0)
            detail = f"{position.path} is gone with {length} bytes unread; put it back, and they are read"
            self.problems.append(Problem("lost-tail", position.path, detail, position.offset, length))

    def look(self, file: LogFile, known: FilePosition | None) -> Work | None:
        """What a file wants to be read, if anything; a new generation gets a name of its own."""
        if known and (known.state == "done" or (as_it_was(file, known) and not unread(known))):
            if known.path != file.path or doubt(file, known, self.probe.now) is not Doubt.NONE:
                self._note_times(known, carried(file, known, self.probe.prover))
            return None
        if not self.probe.settled(file):
            self.wait_for([file])
            return None
        work = self.probe.look(file, known)
        if work is None or known:
            return work
        name = work.position.generation
        while name in self.positions or name in self.changed:
            name += "+"
        self.changed[name] = replace(work.position, generation=name)
        return replace(work, position=self.changed[name])

    def wait_for(self, files: Sequence[LogFile]) -> None:
        """Count packed files that are not written to their end yet, and name those that nobody seems to write."""
        for file in files:
            self.backlog_bytes += file.size
            if self.probe.now - file.mtime_ns / 1e9 > STALE_SECONDS:
                since = datetime.fromtimestamp(file.mtime_ns // 10**9, UTC)
                detail = f"{file.path} is Parquet without its footer since {since:%Y-%m-%d %H:%M:%S}Z; end or remove it"
                self.problems.append(Problem("unfinished-file", file.path, detail, 0, file.size))

    def take(self, works: Sequence[Work], budget: Budget) -> None:
        """Share the budget between files: those that grow first, then a backlog wave by wave; oldest first in each."""
        of_wave = waves([self.probe.now - work.file.mtime_ns / 1e9 for work in works])
        order = sorted(range(len(works)), key=of_wave.__getitem__)
        works = [works[at] for at in order]
        wants = [replace(works[n].want, wave=of_wave[at]) for n, at in enumerate(order)]
        pieces: dict[int, Piece] = {}

        def take_one(at: int, room: int, limit: int | None, must: bool) -> FileShare:
            want = works[at].want
            if want.whole and room < want.unread:
                return FileShare(0, 0, True)
            try:
                taken, pieces[at] = piece_of(works[at], room, limit, must, keep=self.keep, fence=self.probe.fence)
            except OSError as error:
                self.problems.append(unreadable(works[at].file.path, error))
                return FileShare(0, 0, True)
            except (SourceError, Replaced):
                return FileShare(0, 0, True)  # rewritten since it was listed: the next plan finds out what it is
            return taken

        for at, taken in enumerate(spend(wants, budget, take_one)):
            self._note(works[at], taken, pieces.get(at))

    def _note(self, work: Work, taken: FileShare, piece: Piece | None) -> None:
        position = work.position
        end = position.offset + taken.length
        if work.want.whole and not taken.more:
            position = replace(position, offset=end, state="done")
            end = -1
        elif piece and taken.length:
            anchor = piece.anchor
            position = replace(position, offset=end, anchor_length=len(anchor), anchor_hash=fingerprint(anchor))
        if piece and (taken.length or end < 0):
            position = replace(position, prints=piece.prints, proven=self._proven(work, position))
        if not taken.more:
            position = replace(position, mtime_ns=work.file.mtime_ns)
        if taken.length:
            self._split(work, position, end, taken.records)
        known = self.positions.get(position.generation)
        if known and replace(position, changed_ns=known.changed_ns, proven=known.proven) == known:
            self._note_times(known, position)
        elif position != known:
            self.changed[position.generation] = position
        self._rest(work, taken, position)

    def _note_times(self, known: FilePosition, now: FilePosition) -> None:
        """Take in that a file was proven, or that its metadata changed: that alone is not worth a batch."""
        if now.path != known.path:
            self.changed[known.generation] = now
        elif now != known:
            self.better[known.generation] = now

    def _proven(self, work: Work, after: FilePosition) -> int:
        """How far a file is proven once its digests have been taken: all of it, if they show any later change."""
        whole = work.position.proven >= work.position.offset or after.state == "done"
        return span(after) if whole and settled(work.file, self.probe.now) else work.position.proven

    def _split(self, work: Work, after: FilePosition, end: int, events: int) -> None:
        proof = work.position if end < 0 else after
        before = work.position
        self.splits.append(FileSplit(
            after.generation, after.path, before.offset, end, after.head_length, after.head_hash,
            proof.anchor_length, proof.anchor_hash, events, after.device, after.inode,
            root_of(before.prints, before.offset), root_of(after.prints, span(after)),
        ))  # fmt: skip

    def _rest(self, work: Work, taken: FileShare, after: FilePosition) -> None:
        left = work.want.unread - taken.length
        if taken.more:
            self.backlog_bytes += left
            self.backlog_events += left / max(work.want.mean, 1)
        elif left:
            self.unfinished.append(FileSplit(
                after.generation, after.path, max(after.offset - LAST_BYTES, 0), after.offset, after.head_length,
                after.head_hash, after.anchor_length, after.anchor_hash, 0, after.device, after.inode,
            ))  # fmt: skip
        if not taken.more and left and self.probe.now - work.file.mtime_ns / 1e9 > STALE_SECONDS:
            path, since = work.file.path, datetime.fromtimestamp(work.file.mtime_ns // 10**9, UTC)
            what = "half a line, or inside quotes," if work.quoted else "half a line"
            when = f"end the line, and it is read; after {AT_REST_SECONDS // 60} minutes it is read as it is"
            detail = f"{path} ends in {what} since {since:%Y-%m-%d %H:%M:%S}Z; {when}"
            self.problems.append(Problem("unfinished-line", path, detail, work.file.size - left, left))

    def plan(self, positions: Mapping[str, FilePosition], memory: Memory) -> FilePlan:
        """The finished plan. What is only proven goes with it if it has anything else to say."""
        better = {name: pair[1] for name, pair in memory.better.items()} | self.better
        better = {name: position for name, position in better.items() if name not in self.changed}
        memory.better = {name: (positions[name], position) for name, position in better.items()}
        changed = {**better, **self.changed} if self.splits or self.changed else {}
        return FilePlan(
            splits=tuple(self.splits), positions=tuple(changed.values()), backlog_bytes=self.backlog_bytes,
            backlog_events=round(self.backlog_events), problems=(*self.problems, *self.probe.problems),
            unfinished=tuple(self.unfinished),
        )  # fmt: skip
