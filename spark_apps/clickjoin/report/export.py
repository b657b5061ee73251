"""Records of table `quarantine` as a log again, byte for byte, to be read once their cause is fixed. No Spark."""

from __future__ import annotations

import secrets
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from clickjoin.model.errors import ConfigError
from clickjoin.sources.open import header_of

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.lake.delta_reader import DeltaReader

_BATCH = ("replica", "batch")
_KEYS = ("stream", "source_partition", "offset")


@dataclass(frozen=True)
class Exported:
    """Records written, by reason too; `bytes`: size of the files, with their heads and the line ends that were added;
    `without_bytes`: rows that say only that bytes were lost. `files`: one for each header that CSV files had.
    """

    records: int
    bytes: int
    reasons: dict[str, int]
    without_bytes: int
    files: tuple[str, ...]


def export(
    pipeline: Pipeline, delta: DeltaReader, out: Path, *, stream: str = "", reason: str = "", path: str = ""
) -> Exported:
    """Write the quarantined records of one stream (and reason, and files that glob `path` names) to a new file.

    Oldest batch first. Records of CSV files with other headers go to files of their own: `out` with -2, -3 … before its
    suffix. A record that several replicas have quarantined is written once. Errors: ConfigError for a file that is
    there or cannot be written, where there is no such record, or where both streams have some and none is chosen.
    """
    wanted = [(name, "=", value) for name, value in (("stream", stream), ("reason", reason)) if value]
    rows = delta.read("quarantine", wanted or None, [*_BATCH, "stream", "path"]).group_by([*_BATCH, "stream", "path"])
    found = [row for row in rows.aggregate([]).to_pylist() if not path or fnmatchcase(row["path"], path)]
    if not found:
        raise ConfigError("no such record is in quarantine", remedy="Look at `clickjoin status`; nothing was written")
    streams = {row["stream"] for row in found}
    if len(streams) > 1:
        raise ConfigError("both streams have such records, and a log holds one", remedy="Add --stream primary|foreign")
    heads = _heads(pipeline, streams, {row["path"] for row in found})
    batches = sorted({(row["batch"], row["replica"]) for row in found})
    names = [out, *(out.with_name(f"{out.stem}-{number}{out.suffix}") for number in range(2, len(heads) + 1))]
    partial = {name: name.with_name(f".{name.name}.partial") for name in names}
    done = []
    try:
        if there := next((name for name in names if name.exists()), None):
            raise ConfigError(f"{there}: is there already", remedy="Give the name of a new file")
        for name, (head, paths) in zip(names, heads.items(), strict=True):
            with partial[name].open("wb") as log:
                log.write(head + _blank())
                done.append(_write(log, _pieces(delta, batches, wanted, paths), head))
        for name in names:
            partial[name].rename(name)
    except OSError as error:
        raise ConfigError(f"{out}: cannot be written ({error.strerror})", remedy="Give another place") from error
    finally:
        for unfinished in partial.values():
            unfinished.unlink(missing_ok=True)
    return _total(done, names)


def _heads(pipeline: Pipeline, streams: set[str], paths: set[str]) -> dict[bytes, set[str]]:
    """Files that hold records, by the header that comes before them: empty where there is none. Errors: ConfigError."""
    source = next((item.source for item in pipeline.inputs if item.name in streams), pipeline.claimed.source)
    found: defaultdict[bytes, set[str]] = defaultdict(set)
    for path in sorted(paths):
        header = header_of(source, path)
        if header == b"":
            raise ConfigError(
                f"{path}: is gone, or its header cannot be read, and records of it are to be exported",
                remedy="Put it back, or name other files with --path",
            )
        found[header or b""].add(path)
    return found


def _blank() -> bytes:
    """A blank line that no other file has.

    Without it the file could hold the very bytes of one that was read, and would be taken for it.
    """
    return "".join(" \t"[int(bit)] for bit in f"{secrets.randbits(64):064b}").encode() + b"\n"


def _total(done: Sequence[_Written], names: Sequence[Path]) -> Exported:
    reasons = sum((part.reasons for part in done), Counter())
    size, empty = sum(part.bytes for part in done), sum(part.without_bytes for part in done)
    return Exported(reasons.total(), size, dict(reasons), empty, tuple(map(str, names)))


def _pieces(
    delta: DeltaReader, batches: list[tuple[int, str]], wanted: list[Any], paths: Set[str]
) -> Iterator[dict[str, Any]]:
    """Rows in the order of their places, a batch at a time: what a batch may read bounds what is held here."""
    columns = [*_KEYS, "path", "reason", "raw", "part", "length"]
    seen: set[tuple[Any, ...]] = set()
    for number, replica in batches:
        rows = delta.read("quarantine", [*wanted, ("batch", "=", number), ("replica", "=", replica)], columns)
        for row in rows.sort_by([("source_partition", "ascending"), ("offset", "ascending")]).to_pylist():
            key = tuple(row[name] for name in _KEYS)
            if row["path"] in paths and key not in seen:
                seen.add(key)
                yield row


class _Written(NamedTuple):
    """What one file holds; fields as in `Exported`."""

    bytes: int
    reasons: Counter[str]
    without_bytes: int


def _write(log: BinaryIO, pieces: Iterator[dict[str, Any]], head: bytes) -> _Written:
    """What the pieces hold, but the header (`head`), which stands before them, where it is in quarantine too."""
    reasons: Counter[str] = Counter()
    empty, ended = 0, True
    for row in pieces:
        if not row["raw"]:
            empty += 1
            continue
        if row["raw"] == head:
            continue
        if not row["part"]:  # a record begins; the one before may have been the last of its file, without an end
            log.write(b"" if ended else b"\n")
            reasons[row["reason"]] += 1
        log.write(row["raw"])
        ended = row["raw"].endswith(b"\n")
    log.write(b"" if ended else b"\n")
    return _Written(log.tell(), reasons, empty)
