"""What was written, for those who check what came of it: `truth.json` with counts, `truth.parquet` with ids."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from clickjoin.generate.draw import CLICKS, GOOD, QUERIES, REPEAT, EventDraw
from clickjoin.generate.lines import STREAMS, Writer


@dataclass(frozen=True)
class StreamTruth:
    """Counts of one stream: lines = events (distinct good ids) + duplicates (their second lines) + broken."""

    lines: int
    events: int
    duplicates: int
    broken: int


@dataclass(frozen=True)
class Truth:
    """Counts of both streams. A click is joinable (its query was written) or an orphan, if nothing was cut short."""

    queries: StreamTruth
    clicks: StreamTruth
    orphans: int
    joinable: int
    complete: bool
    seed: int


def count(drawn: EventDraw, written: int, seed: int) -> Truth:
    """What the first `written` lines hold."""
    query_there, click_there = (_there(drawn, stream, written) for stream in (QUERIES, CLICKS))
    joinable = click_there & ~drawn.orphan & query_there[drawn.click_query]
    return Truth(
        queries=_of_stream(drawn, QUERIES, written),
        clicks=_of_stream(drawn, CLICKS, written),
        orphans=int((drawn.orphan & click_there).sum()),
        joinable=int(joinable.sum()),
        complete=written == len(drawn.lines),
        seed=seed,
    )


def write(folder: Path, drawn: EventDraw, writer: Writer, written: int, seed: int) -> Truth:
    """Write both files. `truth.parquet`: stream, event_id, primary_id (clicks only), orphan."""
    truth = count(drawn, written, seed)
    queries, clicks = (np.flatnonzero(_there(drawn, stream, written)).tolist() for stream in (QUERIES, CLICKS))
    table = pa.table({
        "stream": pa.array([STREAMS[QUERIES]] * len(queries) + [STREAMS[CLICKS]] * len(clicks)).dictionary_encode(),
        "event_id": [*map(writer.query_id, queries), *map(writer.click_id, clicks)],
        "primary_id": pa.array([*[None] * len(queries), *map(writer.wanted_id, clicks)], pa.string()),
        "orphan": pa.array([*[False] * len(queries), *drawn.orphan[clicks].tolist()], pa.bool_()),
    })  # fmt: skip
    pq.write_table(table, folder / "truth.parquet", compression="zstd")
    (folder / "truth.json").write_text(json.dumps(asdict(truth), indent=2) + "\n", encoding="utf-8")
    return truth


def _there(drawn: EventDraw, stream: int, written: int) -> NDArray[np.bool_]:
    """Which events of a stream have a good line among the first `written`."""
    lines = drawn.lines
    there = np.zeros(len(drawn.click_time if stream == CLICKS else drawn.query_time), dtype=bool)
    good = (lines.stream[:written] == stream) & (lines.kind[:written] == GOOD)
    there[lines.event[:written][good]] = True
    return there


def _of_stream(drawn: EventDraw, stream: int, written: int) -> StreamTruth:
    kinds = drawn.lines.kind[:written][drawn.lines.stream[:written] == stream]
    good, again = int((kinds == GOOD).sum()), int((kinds == REPEAT).sum())
    return StreamTruth(len(kinds), good, again, len(kinds) - good - again)
