"""What the feeder will write and when, as a pure function of the data and a seed."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from bootstrap import INFRA

DATA = INFRA / "data/zozo"
STREAMS = ("impressions", "clicks")
SEED = 1
HELD, HOLD = 20, (3.0, 6.0)  # clicks whose impression is held back, and for how many seconds
REPEATS, REPEAT_AFTER = {"impressions": 240, "clicks": 12}, 8.0  # lines written twice, within so many seconds
BROKEN = ("truncated", "invalid-utf8", "no-id")  # each this many times in each stream:
BROKEN_TIMES = 2
ORPHANS = 2
WARM_CLICKS = 3  # the lines up to this click come first, all at once: Spark's first batch takes many seconds
ROTATED = ("impressions", "men-bts.jsonl")


@dataclass(frozen=True, order=True)
class Line:
    """One line of a log: when it is written (seconds from the start), where, and the id that it adds, if any.

    `kind`: good | held (written after its click) | repeat | orphan | one of BROKEN.
    """

    at: float
    stream: str
    file: str
    data: bytes
    event_id: str
    kind: str


@dataclass(frozen=True)
class Script:
    """All lines in the order of writing, the first `warm` of them before the clock starts.

    Half-way one file is rotated by rename.
    """

    lines: tuple[Line, ...]
    warm: int
    seconds: float
    rotate_at: float
    rotated: tuple[str, str] = ROTATED


def script(seconds: float, seed: int = SEED, data: Path = DATA) -> Script:
    """The whole demonstration, in order of event time and at an even rate, with what goes wrong in real logs."""
    chance = random.Random(seed)
    real = sorted(_real(data), key=lambda line: (line.at, line.event_id))
    warm = [n for n, line in enumerate(real) if line.stream == "clicks"][WARM_CLICKS - 1] + 1
    real = [replace(line, at=seconds * (n - warm) / (len(real) - warm)) for n, line in enumerate(real)]
    lines = [*real[:warm], *_held(real[warm:], chance), *_orphans(real, seconds, chance)]
    for stream, times in REPEATS.items():
        good = [line for line in lines if line.stream == stream and line.at >= 0]
        lines += [_repeat(line, seconds, chance) for line in chance.sample(good, min(times, len(good)))]
        kinds = BROKEN * BROKEN_TIMES
        lines += [
            replace(line, kind=kind, event_id="", data=broken(line.data, kind))
            for line, kind in zip(chance.choices(good, k=len(kinds)), kinds, strict=True)
        ]
    return Script(tuple(sorted(lines)), warm, seconds, seconds / 2)


def _real(data: Path) -> Iterator[Line]:
    """Lines of the data set; `at` is the event time in seconds since 1970."""
    for stream in STREAMS:
        for path in sorted((data / stream).iterdir()):
            text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
            for line in text.splitlines():
                event_id = json.loads(line)["event_id"]
                yield Line(_micros(event_id) / 1e6, stream, path.name.removesuffix(".gz"), line, event_id, "good")


def _micros(event_id: str) -> int:
    return int(event_id.rsplit(":", 1)[1])


def _held(real: list[Line], chance: random.Random) -> list[Line]:
    """The same lines, some impressions so late that their click stands in its log before them."""
    end = real[-1].at
    clicks = [line for line in real if line.stream == "clicks" and line.at + HOLD[1] < end]
    chosen = chance.sample(clicks, min(HELD, len(clicks)))
    held = {json.loads(line.data)["query_id"]: line.at + chance.uniform(*HOLD) for line in chosen}
    return [replace(line, at=held[line.event_id], kind="held") if line.event_id in held else line for line in real]


def _orphans(real: list[Line], seconds: float, chance: random.Random) -> list[Line]:
    """Invented clicks on impressions that never were. They come early, since giving up takes its time."""
    orphans = []
    for line in chance.sample([line for line in real if line.stream == "clicks"], ORPHANS):
        micros = _micros(line.event_id)
        event_id = f"10.99.0.2:1:{micros}"
        record = {"event_id": event_id, "query_id": f"10.99.0.1:1:{micros - 2_000_000}", "invented": True}
        at = chance.uniform(0.1, 0.35) * seconds
        orphans.append(Line(at, "clicks", line.file, json.dumps(record).encode(), event_id, "orphan"))
    return orphans


def _repeat(line: Line, seconds: float, chance: random.Random) -> Line:
    return replace(line, kind="repeat", at=min(line.at + chance.uniform(0, REPEAT_AFTER), seconds))


def broken(data: bytes, kind: str) -> bytes:
    """A damaged copy of a record."""
    if kind == "truncated":
        return data[: len(data) * 2 // 3]
    if kind == "invalid-utf8":
        return data[:-1] + b', "note": "caf\xe9"}'  # Latin-1
    return data.replace(b'"event_id"', b'"id"', 1)
