"""Records of table `quarantine` as a log again, byte for byte, to be read once their cause is fixed. No Spark."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from clickjoin.model.errors import ConfigError
from clickjoin.sources.open import header_of

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.lake.delta_reader import DeltaReader

_BATCH = ("replica", "batch")
_KEYS = ("stream", "source_partition", "offset")


@dataclass(frozen=True)
class Exported:
    """Records written, by reason too; `bytes`: size of the file, with its head and the line ends that were added;
    `without_bytes`: rows that say only that bytes were lost.
    """

    records: int
    bytes: int
    reasons: dict[str, int]
    without_bytes: int


def export(pipeline: Pipeline, delta: DeltaReader, out: Path, *, stream: str = "", reason: str = "") -> Exported:
    """Write the quarantined records of one stream (and reason) to a new file, oldest batch first.

    A record that several replicas have quarantined is written once. Errors: ConfigError for a file that is there or
    cannot be written, where there is no such record, or where both streams have some and none is chosen.
    """
    wanted = [(name, "=", value) for name, value in (("stream", stream), ("reason", reason)) if value]
    rows = delta.read("quarantine", wanted or None, [*_BATCH, "stream", "path"]).group_by([*_BATCH, "stream", "path"])
    found = rows.aggregate([]).to_pylist()
    if not found:
        raise ConfigError("no such record is in quarantine", remedy="Look at `clickjoin status`; nothing was written")
    streams = {row["stream"] for row in found}
    if len(streams) > 1:
        raise ConfigError("both streams have such records, and a log holds one", remedy="Add --stream primary|foreign")
    head = _head(pipeline, streams, {row["path"] for row in found})
    batches = sorted({(row["batch"], row["replica"]) for row in found})
    partial = out.with_name(f".{out.name}.partial")
    try:
        if out.exists():
            raise ConfigError(f"{out}: is there already", remedy="Give the name of a new file")
        with partial.open("wb") as log:
            log.write(head)
            done = _write(log, _pieces(delta, batches, wanted))
        partial.rename(out)
    except OSError as error:
        raise ConfigError(f"{out}: cannot be written ({error.strerror})", remedy="Give another place") from error
    finally:
        partial.unlink(missing_ok=True)
    return done


def _head(pipeline: Pipeline, streams: set[str], paths: set[str]) -> bytes:
    """What comes before the records: the header of CSV, and a blank line that no other file has.

    Without that line the file could hold the very bytes of one that was read, and would be taken for it.
    """
    blank = "".join(" \t"[int(bit)] for bit in f"{secrets.randbits(64):064b}").encode() + b"\n"
    source = next((item.source for item in pipeline.inputs if item.name in streams), pipeline.claimed.source)
    headers = {header_of(source, path) for path in paths} - {None}
    if len(headers) > 1 or b"" in headers:
        raise ConfigError(
            f"{source.path}: the CSV files of these records have several headers, or are gone",
            remedy="Put one of the files back, or write the fixed lines to a new file by hand",
        )
    return b"".join(header for header in headers if header) + blank


def _pieces(delta: DeltaReader, batches: list[tuple[int, str]], wanted: list[Any]) -> Iterator[dict[str, Any]]:
    """Rows in the order of their places, a batch at a time: what a batch may read bounds what is held here."""
    columns = [*_KEYS, "reason", "raw", "part", "length"]
    seen: set[tuple[Any, ...]] = set()
    for number, replica in batches:
        rows = delta.read("quarantine", [*wanted, ("batch", "=", number), ("replica", "=", replica)], columns)
        for row in rows.sort_by([("source_partition", "ascending"), ("offset", "ascending")]).to_pylist():
            key = tuple(row[name] for name in _KEYS)
            if key not in seen:
                seen.add(key)
                yield row


def _write(log: BinaryIO, pieces: Iterator[dict[str, Any]]) -> Exported:
    reasons: Counter[str] = Counter()
    empty, ended = 0, True
    for row in pieces:
        if not row["raw"]:
            empty += 1
            continue
        if not row["part"]:  # a record begins; the one before may have been the last of its file, without an end
            log.write(b"" if ended else b"\n")
            reasons[row["reason"]] += 1
        log.write(row["raw"])
        ended = row["raw"].endswith(b"\n")
    log.write(b"" if ended else b"\n")
    return Exported(reasons.total(), log.tell(), dict(reasons), empty)
