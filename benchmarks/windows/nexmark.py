"""Nexmark's q5 and q7 over its own bids: what must come of them, and how they are said by this project.

A processor is given keys and times of events, and no other columns. Hence:

- q5, the auctions with most bids in windows of 10 s that slide by 2 s: TumblingCounts by auction and 2 s; a reader of
  table `signals` adds five of them up for each window and takes the highest.
- q7, the highest bid in each 10 s: the price has to be in the key, which is [price, auction, bidder], so that nearly
  every bid is a key of its own; TumblingCounts by 10 s, and a reader takes the highest price of each window. The port
  is not made for this: the processing says which windows are complete, and the reader does the query.

Both readers go over all signals once, at the end, with NumPy. What they make is not published anywhere.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as pj

from benchmarks.nexmark.logs import build
from benchmarks.nexmark.logs import make as make_logs
from benchmarks.windows.events import BEGAN, Ended, Load, laid, read
from benchmarks.windows.product import Lake

SLIDE, WIDTH = 2_000, 10_000
KEYS = {"q5": ["auction"], "q7": ["price", "auction", "bidder"]}
FIELDS = pa.schema([(name, pa.int64()) for name in ("date_time", "auction", "bidder", "price")])


def bids(folder: Path, events: int, batch: int) -> Load:
    """The bids among so many events of Nexmark's generator, in order of time, which begins with a whole minute."""
    logs = folder / "logs"
    make_logs(build(), logs, events)
    options = pj.ParseOptions(explicit_schema=FIELDS, unexpected_field_behavior="ignore")
    files = sorted((logs / "bids").glob("*.jsonl"), key=lambda path: int(path.stem))
    rows = pa.concat_tables(pj.read_json(path, parse_options=options) for path in files).combine_chunks()
    rows = rows.sort_by("date_time")
    at = np.asarray(rows["date_time"])
    at = at - at[0] + BEGAN
    rows = rows.drop_columns("date_time").append_column("at", pa.array(at))
    numbered = rows.append_column("id", pa.array(np.arange(len(at))).cast(pa.string()))
    return laid(folder / "bids", numbered, batch, int(at[-1]) + 2 * WIDTH)


def truth(name: str, load: Load) -> pa.Table:
    """What must come of a query, from the bids themselves."""
    rows = read(load)
    columns = {key: np.asarray(rows[key]) for key in ("at", "price", "auction", "bidder")}
    return _q5_truth(columns) if name == "q5" else _q7_truth(columns)


def run(name: str, batch: int, load: Load, folder: Path) -> Ended:
    """Seconds of the processing and of the reader together, and what the reader found."""
    lake = Lake(folder / "own", KEYS[name], {"args": {"window": "2s" if name == "q5" else "10s"}}, batch)
    lake.fill(load)
    seconds, start = lake.drained(), time.perf_counter()
    found = (_q5 if name == "q5" else _q7)(lake.reported())
    return Ended(seconds + time.perf_counter() - start, found)


def _q5(signals: pa.Table) -> pa.Table:
    """Windows of 10 s out of counts of 2 s."""
    auctions, panes = np.asarray(signals["item"].cast(pa.int64())), np.asarray(signals["window_start"])
    each = np.asarray(signals["num"])
    starts = np.concatenate([panes - back for back in range(0, WIDTH, SLIDE)])
    repeated = np.tile(auctions, WIDTH // SLIDE)
    windows = pa.table({"window_start": starts, "auction": repeated, "num": np.tile(each, WIDTH // SLIDE)})
    sums = windows.group_by(["window_start", "auction"]).aggregate([("num", "sum")]).rename_columns({"num_sum": "num"})
    return _highest(sums, "num")


def _q7(signals: pa.Table) -> pa.Table:
    """The highest price of each window, out of keys that hold it; a bid that came twice counts twice."""
    text = pc.utf8_trim(signals["item"].combine_chunks(), '[]"')
    parts = pc.split_pattern(text, '","').flatten()
    of = {
        name: parts.take(pa.array(np.arange(at, len(parts), 3))).cast(pa.int64()) for at, name in enumerate(KEYS["q7"])
    }
    found = _highest(pa.table({"window_start": signals["window_start"], **of, "num": signals["num"]}), "price")
    again = np.repeat(np.arange(found.num_rows), np.asarray(found["num"]))
    return found.take(pa.array(again)).drop_columns("num")


def _highest(rows: pa.Table, what: str) -> pa.Table:
    """Of each window the rows whose value is the highest of it."""
    windows = np.asarray(rows["window_start"])
    values = np.asarray(rows[what])
    _, at = np.unique(windows, return_inverse=True)
    most = np.zeros(at.max() + 1, np.int64)
    np.maximum.at(most, at, values)
    return rows.filter(pa.array(values == most[at]))


def _q5_truth(bid: dict[str, Any]) -> pa.Table:
    """Window by window, from the times of bids themselves."""
    first, found = int(bid["at"][0]) // SLIDE * SLIDE - WIDTH + SLIDE, []
    for start in range(first, int(bid["at"][-1]) + 1, SLIDE):
        low, high = np.searchsorted(bid["at"], [start, start + WIDTH])
        auctions, counts = np.unique(bid["auction"][low:high], return_counts=True)
        found += [(start, int(one), int(counts.max())) for one in auctions[counts == counts.max()]]
    return _table(found, "window_start", "auction", "num")


def _q7_truth(bid: dict[str, Any]) -> pa.Table:
    found = []
    for start in range(int(bid["at"][0]) // WIDTH * WIDTH, int(bid["at"][-1]) + 1, WIDTH):
        inside = slice(*np.searchsorted(bid["at"], [start, start + WIDTH]))
        most = bid["price"][inside].max()
        for at in np.flatnonzero(bid["price"][inside] == most) + inside.start:
            found.append((start, int(most), int(bid["auction"][at]), int(bid["bidder"][at])))
    return _table(found, "window_start", "price", "auction", "bidder")


def _table(rows: list[tuple[int, ...]], *names: str) -> pa.Table:
    return pa.table(dict(zip(names, (list(column) for column in zip(*sorted(rows), strict=True)), strict=True)))
