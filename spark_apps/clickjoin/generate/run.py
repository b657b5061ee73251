"""Writing the traffic: all at once, replayed at a rate, or live."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from clickjoin.generate import truth as truths
from clickjoin.generate.draw import CLICKS, GOOD, MICROS, Drawn, Ints, draw
from clickjoin.generate.files import LogFiles
from clickjoin.generate.lines import Writer
from clickjoin.generate.traffic import Traffic

CHUNK = 50_000
TICK = 0.01


@dataclass(frozen=True)
class Clock:
    """Seconds since 1970, and how to wait; tests pass in their own."""

    now: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep


def generate(
    folder: str | Path,
    *,
    progress: Callable[[int, int], None] = lambda done, all_: None,
    clock: Clock = Clock(),
    **options: Any,
) -> truths.Truth:
    """Write `queries/*.jsonl` and `clicks/*.jsonl` into a folder, and the truth about them beside.

    Options are those of Traffic. With `start` given, the same seed gives the same bytes. `progress` hears lines written
    and lines in all. Cut short by Ctrl-C it still writes the truth of what is there.
    Errors: ConfigError for options out of range, or a folder that holds logs already.
    """
    traffic, base = Traffic(**options), Path(folder)
    drawn, begun = draw(traffic), clock.now()
    stamps = _Live(drawn) if traffic.live else None
    start = 0 if stamps else round(traffic.begins(datetime.fromtimestamp(begun, UTC)).timestamp() * MICROS)
    times = (stamps.query, stamps.click) if stamps else (drawn.query_time + start, drawn.click_time + start)
    writer, written = Writer(traffic, drawn, *times), 0
    with LogFiles(base, traffic.files) as files:
        try:
            while written < len(drawn.lines):
                now = clock.now()
                until = _due(traffic, drawn, now - begun, written)
                if until == written:
                    clock.sleep(TICK)
                    continue
                if stamps:
                    stamps.until(now, begun, written, until)
                _append(files, writer, drawn, written, until)
                written = until
                progress(written, len(drawn.lines))
        finally:
            truth = truths.count(drawn, written, traffic.seed, clock.now() - begun)
            truths.write(base, truth, drawn, writer, written)
    return truth


def _due(traffic: Traffic, drawn: Drawn, elapsed: float, written: int) -> int:
    """Up to which line to write now, `elapsed` seconds after the first."""
    if traffic.live:
        due = int(np.searchsorted(drawn.lines.when, elapsed * MICROS, side="right"))
    else:
        due = int(elapsed * traffic.rate) if traffic.rate else len(drawn.lines)
    return max(written, min(due, written + CHUNK, len(drawn.lines)))


def _append(files: LogFiles, writer: Writer, drawn: Drawn, start: int, end: int) -> None:
    lines, by_file = drawn.lines, {}
    columns = (column[start:end].tolist() for column in (lines.stream, lines.event, lines.kind, lines.file))
    for stream, event, kind, file in zip(*columns, strict=True):
        by_file.setdefault((stream, file), []).append(writer.line(stream, event, kind))
    for (stream, file), texts in by_file.items():
        files.append(stream, file, texts)


class _Live:
    """Times of live ids: a click's is the moment of writing, a query's the moment of asking, even if it is logged late."""

    def __init__(self, drawn: Drawn) -> None:
        self.query, self.click = np.zeros_like(drawn.query_time), np.zeros_like(drawn.click_time)
        self._drawn, self._asked, self._last = drawn, 0, 0

    def until(self, now: float, begun: float, start: int, end: int) -> None:
        """Give ids to all queries asked by `now`, and to the clicks among lines start to end."""
        lines, micros = self._drawn.lines, int(now * MICROS)
        asked = int(np.searchsorted(self._drawn.query_time, int((now - begun) * MICROS), side="right"))
        first = (lines.stream[start:end] == CLICKS) & (lines.kind[start:end] == GOOD)
        clicks = lines.event[start:end][first]
        moments = self._moments(micros, asked - self._asked + len(clicks))
        self.query[self._asked : asked] = moments[: asked - self._asked]
        self.click[clicks] = moments[asked - self._asked :]
        self._asked = asked

    def _moments(self, micros: int, n: int) -> Ints:
        """n distinct times that end now and come after all given before."""
        begin = max(micros - n, self._last) + 1
        self._last = begin + n - 1 if n else self._last
        return np.arange(begin, begin + n)
