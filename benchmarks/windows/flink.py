"""Flink SQL's side: tumbling counts, and Nexmark's q5 and q7, as Flink's and Nexmark's own pages write them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.flink.warm import STATES, Flink, steady
from benchmarks.windows.events import Ended, Load, millis

SETTINGS = STATES["rocksdb"] | {
    "table.local-time-zone": "UTC",
    "table.exec.mini-batch.enabled": "true",  # as Nexmark sets Flink up
    "table.exec.mini-batch.allow-latency": "2 s",
    "table.exec.mini-batch.size": "5000",
}
FILES = "'connector' = 'filesystem', 'path' = 'file://{folder}', 'format' = 'parquet', 'parquet.utc-timezone' = 'true'"
TIMED = """
  `at` BIGINT, event_at AS TO_TIMESTAMP_LTZ(`at`, 3), WATERMARK FOR event_at AS event_at
"""
EVENTS = f"CREATE TABLE event (item STRING, {TIMED}) WITH ({FILES})"
BID = f"CREATE TABLE bid (auction BIGINT, bidder BIGINT, price BIGINT, {TIMED}) WITH ({FILES})"
OUT = "CREATE TABLE found ({columns}) WITH (" + FILES + ")"
COUNTS = """
INSERT INTO found SELECT item, window_start, COUNT(*)
FROM TABLE(TUMBLE(TABLE event, DESCRIPTOR(event_at), INTERVAL '1' MINUTE)) GROUP BY item, window_start, window_end
"""
NUMBERS = """
SELECT auction, COUNT(*) AS num, window_start, window_end
FROM TABLE(HOP(TABLE bid, DESCRIPTOR(event_at), INTERVAL '2' SECOND, INTERVAL '10' SECOND))
GROUP BY auction, window_start, window_end
"""
Q5 = f"""
INSERT INTO found SELECT A.window_start, A.auction, A.num FROM ({NUMBERS}) AS A JOIN (
  SELECT MAX(num) AS maxn, window_start, window_end FROM ({NUMBERS}) AS C GROUP BY window_start, window_end
) AS M ON A.window_start = M.window_start AND A.window_end = M.window_end AND A.num >= M.maxn
"""
# Nexmark says BETWEEN, which takes in a bid of the same price at the next window's first moment.
Q7 = """
INSERT INTO found SELECT M.window_start, B.price, B.auction, B.bidder FROM bid B JOIN (
  SELECT MAX(price) AS maxprice, window_start, window_end
  FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(event_at), INTERVAL '10' SECOND)) GROUP BY window_start, window_end
) M ON B.price = M.maxprice
WHERE B.event_at >= CAST(M.window_start AS TIMESTAMP_LTZ(3)) AND B.event_at < CAST(M.window_end AS TIMESTAMP_LTZ(3))
"""


@dataclass(frozen=True)
class Query:
    """SQL: a table of what is read, columns of what is written, and what is inserted there."""

    source: str
    columns: str
    insert: str


START = "window_start TIMESTAMP(3)"
QUERIES = {
    "counts": Query(EVENTS, f"item STRING, {START}, num BIGINT", COUNTS),
    "q5": Query(BID, f"{START}, auction BIGINT, num BIGINT", Q5),
    "q7": Query(BID, f"{START}, price BIGINT, auction BIGINT, bidder BIGINT", Q7),
}


def run(flink: Flink, name: str, load: Load, folder: Path) -> Ended:
    """Seconds of a job from its first statement to its end, and what it committed."""
    query, out = QUERIES[name], folder / "out"
    before = [query.source.format(folder=load.lanes), OUT.format(columns=query.columns, folder=out)]
    done = flink.run(before, query.insert, SETTINGS, folder)
    files = [path for path in out.rglob("*") if path.is_file() and not path.name.startswith((".", "_"))]
    rows = pa.concat_tables(pq.read_table(path) for path in files)
    at = rows.column_names.index("window_start")
    # What leaves the sources may be counts already; the share of it that has left is that of the events.
    most = max((lines for _, lines in done.progress), default=0)
    pace = steady(done.progress, most) * load.events / max(most, 1)
    return Ended(done.seconds, rows.set_column(at, "window_start", millis(rows["window_start"])), pace)
