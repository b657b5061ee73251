"""A pipeline whose output was processed by key, made by hand: two days of a rhythm, then spikes and a dip."""

from __future__ import annotations

import math
import time
from pathlib import Path

from tests.unit.processing_bench import DAY, HOUR, MINUTE, Event, Output

EVIL = "<script>window.struck=1</script>"
ARGS = {"window": "1m", "season": "1d", "min_count": 10}
_DAYS, _STEP = 2.5, 2 * MINUTE
_BURST, _SILENT = 40, 25  # minutes ago


def trends(folder: Path) -> None:
    """Its file, its log with a line that is not read yet, and its lake."""
    logs = folder / "logs"
    logs.mkdir()
    (logs / "today.jsonl").write_text('{"id":"new","at":"2026-01-01T00:00:00Z","item":"shoes"}\n')
    out = Output(folder, {"processor": "clickjoin.processors:SpikesAndDips", "args": ARGS}, name="trends")
    out.now = time.time_ns() // 1000
    now = out.now // MINUTE * MINUTE
    for watermark in (now - HOUR, now - 2 * MINUTE):
        begin = now - int(_DAYS * DAY) if out.batch == 0 else now - HOUR
        out.publish(_events(begin, watermark if out.batch == 0 else now, now), watermark)
        out.drain()


def _events(begin: int, end: int, now: int) -> list[Event]:
    found: list[Event] = []
    for at in range(begin, end, MINUTE):
        ago = (now - at) // MINUTE
        rhythm = 5 + 3 * math.sin(2 * math.pi * (at % DAY) / DAY) + at // MINUTE * 7 % 3
        counts = {"shoes": int(rhythm), EVIL: 2, "hats": 0 if ago <= _SILENT else 6}
        if _BURST - 3 < ago <= _BURST:
            counts |= {"shoes": 60, EVIL: 25}
        found += [(f"{key}{at}-{n}", key, at + n * 10**6) for key, count in counts.items() for n in range(count)]
    return found
