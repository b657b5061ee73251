"""Writing the traffic: all at once, replayed at a rate, or live."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from clickjoin.generate import truth as truths
from clickjoin.generate.draw import CLICKS, GOOD, MICROS, EventDraw, Ints, draw
from clickjoin.generate.lines import LogFiles, Writer
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
    traffic: Traffic = Traffic(),
    *,
    progress: Callable[[int, int], None] = lambda done, whole: None,
    clock: Clock = Clock(),
) -> truths.Truth:
    """Write `queries/*.jsonl` and `clicks/*.jsonl` into a folder, and the truth about them beside.

    With a start given, the same traffic gives the same bytes. `progress` hears lines written and lines in all. Cut
    short by Ctrl-C it still writes the truth. Errors: ConfigError for a folder that holds logs already.
    """
    base, drawn, begun = Path(folder), draw(traffic), clock.now()
    stamps = _LiveTimes(drawn) if traffic.live else _FixedTimes(drawn, traffic, begun)
    writer, written = Writer(traffic, drawn, stamps.query, stamps.click), 0
    with LogFiles(base, traffic.files) as files:
        try:
            while written < len(drawn.lines):
                now = clock.now()
                until = _due(traffic, drawn, now - begun, written)
                if until == written:
                    clock.sleep(TICK)
                    continue
                stamps.until(now, begun, written, until)
                _append(files, writer, drawn, written, until)
                written = until
                progress(written, len(drawn.lines))
        finally:
            truth = truths.write(base, drawn, writer, written, traffic.seed)
    return truth


def _due(traffic: Traffic, drawn: EventDraw, elapsed: float, written: int) -> int:
    """Up to which line to write now, `elapsed` seconds after the first."""
    if traffic.live:
        due = int(np.searchsorted(drawn.lines.when, elapsed * MICROS, side="right"))
    else:
        due = int(elapsed * traffic.rate) if traffic.rate else len(drawn.lines)
    return max(written, min(due, written + CHUNK, len(drawn.lines)))


def _append(files: LogFiles, writer: Writer, drawn: EventDraw, start: int, end: int) -> None:
    lines = drawn.lines
    by_file: dict[tuple[int, int], list[str]] = {}
    columns = (column[start:end].tolist() for column in (lines.stream, lines.event, lines.kind, lines.file))
    for stream, event, kind, file in zip(*columns, strict=True):
        by_file.setdefault((stream, file), []).append(writer.line(stream, event, kind))
    for (stream, file), texts in by_file.items():
        files.append(stream, file, texts)


class _FixedTimes:
    """Times of ids that were fixed beforehand."""

    def __init__(self, drawn: EventDraw, traffic: Traffic, now: float) -> None:
        start = round(traffic.begins(datetime.fromtimestamp(now, UTC)).timestamp() * MICROS)
        self.query, self.click = drawn.query_time + start, drawn.click_time + start

    def until(self, now: float, begun: float, start: int, end: int) -> None:
        """Nothing is left to do."""


class _LiveTimes:
    """Times of live ids: a click's is the moment of writing, a query's that of asking, even if its line is late."""

    def __init__(self, drawn: EventDraw) -> None:
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
