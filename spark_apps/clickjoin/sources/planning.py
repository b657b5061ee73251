"""What a batch reads of a glob of growing files, and what is told of those that are gone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from clickjoin.sources.base import Budget, Position, Problem, Slice, SourcePlan
from clickjoin.sources.contents import HEAD, fingerprint, opened, read_at
from clickjoin.sources.cut import cut
from clickjoin.sources.identity import Match, adopt, follow, unchanged, unread
from clickjoin.sources.listing import Found, Listing, list_files, unreadable
from clickjoin.sources.probe import FileProbe, Work
from clickjoin.sources.share import Taken, spend, waves

STALE_SECONDS = 60  # half a line that has not grown for this long is worth a word


def make_plan(pattern: str, positions: Mapping[str, Position], budget: Budget, now: float) -> SourcePlan:
    """Plan a batch of the files that a glob names. `now` in seconds since 1970.

    A file that is as it was, with nothing unread, is not opened. A folder that does not exist changes nothing.
    """
    probe = FileProbe(now)
    listing, match = _survey(pattern, positions, probe)
    if listing.missing:
        return SourcePlan(problems=listing.problems)
    draft = _Draft(positions, probe)
    draft.problems.extend(listing.problems)
    if not positions and not any(file.matched for file in listing.files):
        draft.problems.append(Problem("missing", pattern, f"no file matches {pattern}; correct the source's path"))
    for position in [*match.retired, *match.orphans.values()]:
        draft.drop(position, quiet=position in match.retired)
    works = [work for file, position in match.tracked if (work := draft.look(file, position))]
    works.sort(key=lambda work: (work.position.mtime_ns, work.file.path))
    draft.backlog_bytes += sum(file.size for file in match.waiting)
    draft.take(works, budget)
    return draft.plan()


def _survey(pattern: str, positions: Mapping[str, Position], probe: FileProbe) -> tuple[Listing, Match]:
    inodes = {position.inode for position in positions.values()}
    listing = list_files(pattern, inodes)
    match = follow(listing, positions, probe)
    if match.orphans and not listing.missing:
        # Renamed while the folder was scanned, or copied to a name that the glob does not cover: look at everything.
        listing = list_files(pattern, inodes, everything=True)
        probe.problems.clear()
        match = follow(listing, positions, probe)
    adopt(match, positions, probe)
    return listing, match


@dataclass(frozen=True)
class _Piece:
    end: int
    anchor: bytes


@dataclass
class _Draft:
    """A plan in the making."""

    positions: Mapping[str, Position]
    probe: FileProbe
    slices: list[Slice] = field(default_factory=list)
    changed: dict[str, Position] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    backlog_bytes: int = 0
    backlog_events: float = 0

    def drop(self, position: Position, *, quiet: bool) -> None:
        """Mark a generation as gone, and tell of what was unread in it, unless it is read under another name."""
        self.changed[position.generation] = replace(position, state="gone")
        if unread(position) and not quiet:
            length = max(position.size - position.offset, 0)
            detail = f"{position.path} is gone with {length} bytes unread; put it back, and they are read"
            self.problems.append(Problem("lost-tail", position.path, detail, position.offset, length))

    def look(self, file: Found, known: Position | None) -> Work | None:
        """What a file wants to be read, if anything; a new generation gets a name of its own."""
        if known and unchanged(file, known) and not unread(known):
            if known.path != file.path:
                self.changed[known.generation] = replace(known, path=file.path)
            return None
        if not self.probe.settled(file):
            self.backlog_bytes += file.size
            return None
        work = self.probe.look(file, known)
        if work is None or known:
            return work
        name = work.position.generation
        while name in self.positions or name in self.changed:
            name += "+"
        self.changed[name] = replace(work.position, generation=name)
        return replace(work, position=self.changed[name])

    def take(self, works: Sequence[Work], budget: Budget) -> None:
        """Share the budget between files: those that grow first, then a backlog wave by wave; oldest first in each."""
        of_wave = waves([self.probe.now - work.file.mtime_ns / 1e9 for work in works])
        order = sorted(range(len(works)), key=of_wave.__getitem__)
        works = [works[at] for at in order]
        wants = [replace(works[n].want, wave=of_wave[at]) for n, at in enumerate(order)]
        pieces: dict[int, _Piece] = {}

        def take_one(at: int, room: int, limit: int | None, must: bool) -> Taken:
            want = works[at].want
            if want.whole:
                fits = room >= want.unread
                return Taken(want.unread if fits else 0, _events(want.unread, want.mean) if fits else 0, not fits)
            try:
                taken, pieces[at] = _cut(works[at], room, limit, must)
            except OSError as error:
                self.problems.append(unreadable(works[at].file.path, error))
                return Taken(0, 0, True)
            return taken

        for at, taken in enumerate(spend(wants, budget, take_one)):
            self._note(works[at], taken, pieces.get(at))

    def _note(self, work: Work, taken: Taken, piece: _Piece | None) -> None:
        position = work.position
        if work.want.whole and not taken.more:
            done = position.offset + work.want.unread
            position = replace(position, offset=done, state="done", mtime_ns=work.file.mtime_ns)
            end = -1
        else:
            end = position.offset + taken.length
            if piece and taken.length:
                position = replace(
                    position, offset=end, anchor_length=len(piece.anchor), anchor_hash=fingerprint(piece.anchor)
                )  # fmt: skip
            if not taken.more:
                position = replace(position, mtime_ns=work.file.mtime_ns)
        if taken.length:
            self._slice(work, position, end, taken.records)
        if position != self.positions.get(position.generation):
            self.changed[position.generation] = position
        self._rest(work, taken)

    def _slice(self, work: Work, after: Position, end: int, events: int) -> None:
        proof = work.position if end < 0 else after
        self.slices.append(Slice(
            after.generation, after.path, work.position.offset, end, after.head_length, after.head_hash,
            proof.anchor_length, proof.anchor_hash, events,
        ))  # fmt: skip

    def _rest(self, work: Work, taken: Taken) -> None:
        left = work.want.unread - taken.length
        if taken.more:
            self.backlog_bytes += left
            self.backlog_events += left / max(work.want.mean, 1)
        elif left and self.probe.now - work.file.mtime_ns / 1e9 > STALE_SECONDS:
            path, since = work.file.path, datetime.fromtimestamp(work.file.mtime_ns // 10**9, UTC)
            detail = f"{path} ends in half a line since {since:%Y-%m-%d %H:%M:%S}Z; end the line, and it is read"
            self.problems.append(Problem("unfinished-line", path, detail, work.file.size - left, left))

    def plan(self) -> SourcePlan:
        """The finished plan."""
        return SourcePlan(
            slices=tuple(self.slices), positions=tuple(self.changed.values()), backlog_bytes=self.backlog_bytes,
            backlog_events=round(self.backlog_events), problems=(*self.problems, *self.probe.problems),
        )  # fmt: skip


def _events(length: int, mean: float) -> int:
    return max(round(length / max(mean, 1)), 1) if length else 0


def _cut(work: Work, room: int, limit: int | None, must: bool) -> tuple[Taken, _Piece]:
    start, size = work.position.offset, work.file.size
    with opened(work.file.path) as fd:
        ending = cut(fd, start, size, room, limit, must)
        anchor = read_at(fd, max(ending.end - HEAD, 0), min(HEAD, ending.end)) if ending.end > start else b""
    length = ending.end - start
    records = _events(length, work.want.mean) if ending.records is None else ending.records
    return Taken(length, records, ending.more), _Piece(ending.end, anchor)
