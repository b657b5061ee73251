"""Looking into files for planning: what they are, and what of them is unread."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from random import Random

from clickjoin.kernel.file_bytes import (
    HEAD,
    AllowedFolders,
    fingerprint,
    has_head,
    has_tail,
    head_of,
    holds,
    opened,
    packed_blocks,
    read_at,
)
from clickjoin.kernel.packed import BrokenFile, is_complete, is_packed, is_parquet, may_be_packed, unpacked_size
from clickjoin.kernel.parse.csv_lines import CsvForm
from clickjoin.model.errors import SourceError
from clickjoin.model.split import Problem
from clickjoin.sources.files.digests import last_is
from clickjoin.sources.files.identity import Verdict, unread
from clickjoin.sources.files.line_end import SAMPLE, records_in
from clickjoin.sources.files.listing import LogFile, unreadable
from clickjoin.sources.files.proving import Prover, carried
from clickjoin.sources.files.share import Want
from clickjoin.sources.files.state import FilePosition, proof_of

SETTLE_SECONDS = 10  # a packed file whose last write is older than this is taken as complete
AT_REST_SECONDS = 3600  # nobody writes it any more: a last line needs no newline, Parquet no footer, quotes no end
FormOf = Callable[[str], CsvForm | None]  # by a file's path
QUICK = 4 << 20  # a packed file up to this size is unpacked to see whether it is complete


def no_csv(path: str) -> CsvForm | None:
    """The form of a file that is no CSV."""
    return None


@dataclass(frozen=True)
class Work:
    """A file with something unread: its position as if nothing were planned now, and what it wants to be read.

    `quoted`: the separator of CSV whose records go over several lines. `closed`: its last line needs no newline.
    """

    file: LogFile
    position: FilePosition
    want: Want
    quoted: str = ""
    closed: bool = False


class FileProbe:
    """Looks into files at one moment (`now` in seconds since 1970), and gathers the problems that it meets."""

    def __init__(
        self, now: float, fence: AllowedFolders | None = None, lot: Random | None = None, csv: FormOf = no_csv
    ) -> None:
        self.now, self.fence, self.csv = now, fence, csv
        self.problems: list[Problem] = []
        self.prover = Prover(now, lot or Random(), fence)
        self.rewritten: set[str] = set()

    def compare(self, file: LogFile, position: FilePosition) -> Verdict:
        """Whether the file seems to hold the generation up to its offset; UNKNOWN if it cannot be read now."""
        return self._verdict(file, lambda: self._seems(file, position))

    def same(self, file: LogFile, position: FilePosition) -> bool:
        """Whether another file holds all that was read of the generation."""

        def whole() -> bool:
            with opened(file.path, self.fence) as fd:
                packed = is_packed(fd, file.path)
                likely = packed or holds(fd, packed, proof_of(position), file.path)
            return likely and self.prover.same(file, position)

        return self._verdict(file, whole) is Verdict.SAME

    def refuted(self, tracked: Sequence[tuple[LogFile, FilePosition | None]]) -> set[str]:
        """Generations that their files turn out not to hold; see `proving.Prover`."""
        found = self.prover.refute(tracked)
        self.rewritten |= found
        return found

    def _seems(self, file: LogFile, position: FilePosition) -> bool:
        if position.state == "done":
            return file.size == position.size  # what it holds is compared if its times have changed
        proof = proof_of(position)
        with opened(file.path, self.fence) as fd:
            packed = is_packed(fd, file.path)
            if holds(fd, packed, proof, file.path) and (
                packed or last_is(fd, position.prints, position.offset, file.path)
            ):
                return True
            if file.size == position.size or (file.size > position.offset and has_head(fd, packed, proof)):
                self.rewritten.add(position.generation)
            return False

    def _verdict(self, file: LogFile, look: Callable[[], bool]) -> Verdict:
        try:
            return Verdict.SAME if look() else Verdict.OTHER
        except FileNotFoundError:
            return Verdict.UNKNOWN  # renamed since it was listed: the next plan finds it
        except OSError as error:
            self.problems.append(unreadable(file.path, error))
            return Verdict.UNKNOWN
        except SourceError:
            return Verdict.OTHER  # shorter than it was listed
        except BrokenFile:
            return Verdict.OTHER if self.aged(file) else Verdict.UNKNOWN

    def head(self, file: LogFile) -> bytes | None:
        """Up to the first 1024 bytes; None if they cannot be read."""
        try:
            with opened(file.path, self.fence) as fd:
                return head_of(fd, is_packed(fd, file.path))
        except OSError:
            return None  # `look` tells of it if the file is wanted

    def aged(self, file: LogFile) -> bool:
        """Whether the last write was some time ago; also if its time lies in the future."""
        return self._aged_by(file, SETTLE_SECONDS)

    def _aged_by(self, file: LogFile, seconds: float) -> bool:
        return abs(self.now - file.mtime_ns / 1e9) >= seconds

    def settled(self, file: LogFile) -> bool:
        """Whether the file can be read to its end as it is: always, but for a packed file still being written."""
        if not may_be_packed(file.path):
            return True
        try:
            with opened(file.path, self.fence) as fd:
                if is_parquet(fd):
                    return is_complete(fd) or self._aged_by(file, AT_REST_SECONDS)
                if self.aged(file):
                    return True
                return file.size <= QUICK and is_complete(fd) if is_packed(fd, file.path) else file.size > 3
        except OSError:
            return self.aged(file)  # `look` reports it

    def look(self, file: LogFile, known: FilePosition | None) -> Work | None:
        """What a file wants to be read; None if it cannot be read now."""
        try:
            with opened(file.path, self.fence) as fd:
                return self._look(fd, file, known)
        except FileNotFoundError:
            return None
        except OSError as error:
            self.problems.append(unreadable(file.path, error))
            return None

    def _look(self, fd: int, file: LogFile, known: FilePosition | None) -> Work | None:
        packed = is_packed(fd, file.path)
        sample, head = b"", b""
        if known is None or known.head_length < HEAD:
            head = head_of(fd, packed)
            if not packed:
                head = head[: file.size]
        offset = known.offset if known else 0
        if not packed:
            sample = read_at(fd, offset, min(SAMPLE, file.size - offset))
            if len(sample) < min(SAMPLE, file.size - offset):
                return None  # truncated since it was listed
        position = self._position(file, known, head)
        if packed:
            return Work(file, position, _packed_want(fd, file, position))
        form = self.csv(file.path)
        quoted = form.separator if form and form.multiline else ""
        records = records_in(sample, quoted) if quoted else sample.count(b"\n")
        closed = self._aged_by(file, AT_REST_SECONDS) or (
            form is None and self.aged(file) and _ends_in_object(fd, offset, file.size)
        )
        return Work(file, position, Want(file.size - offset, len(sample) / max(records, 1)), quoted, closed)

    def _position(self, file: LogFile, known: FilePosition | None, head: bytes) -> FilePosition:
        if known is None:
            return _new(file, head)
        # What is partly read keeps the age of its oldest unread byte, so that it keeps its place in the queue.
        age = min(known.mtime_ns, file.mtime_ns) if unread(known) else file.mtime_ns
        moved = replace(carried(file, known, self.prover), size=file.size, mtime_ns=age, state="live")
        return replace(moved, head_length=len(head), head_hash=fingerprint(head)) if head else moved


def _new(file: LogFile, head: bytes) -> FilePosition:
    print_ = fingerprint(head)
    name = f"{file.device}:{file.inode}:{file.mtime_ns}:{file.path}:{print_}"
    return FilePosition(
        blake2b(name.encode("utf-8", "surrogateescape"), digest_size=8).hexdigest(),
        file.path, file.device, file.inode, 0, file.size, file.mtime_ns, len(head), print_, 0, "",
        written_ns=file.mtime_ns, changed_ns=file.ctime_ns,
    )  # fmt: skip


def _ends_in_object(fd: int, start: int, size: int) -> bool:
    """Whether what follows the last newline is a whole JSON object: more bytes would make another record of it."""
    tail = read_at(fd, max(start, size - SAMPLE), min(SAMPLE, size - start)).rpartition(b"\n")[2]
    if not tail.rstrip().endswith(b"}"):
        return False
    try:
        return isinstance(json.loads(tail), dict)
    except (ValueError, RecursionError):  # half a line, no text, or longer than was read
        return False


def _packed_want(fd: int, file: LogFile, position: FilePosition) -> Want:
    """About what is left after the position, by bytes and records; 0 if nothing follows it."""
    length, sample = max(unpacked_size(fd, file.size) - position.offset, file.size, 1), b""
    try:
        if position.offset and not has_tail(fd, proof_of(position), file.path):
            length = 0
        if not position.offset:
            sample = next(packed_blocks(fd, 0, -1, proof_of(position), file.path, SAMPLE), b"")
    except BrokenFile:
        pass  # its readers put that on record
    return Want(length, len(sample) / max(sample.count(b"\n"), 1) if sample else 200.0, whole=True)
