"""DuckDB doing the same work with no guarantee, on two threads: what this machine can do at most.

A process of its own, which is ready before a run and does what each line of its input says (see `Limit`). It reads the
lines, drops repeats, joins, and writes as zstd Parquet what tables `primary`, `foreign`, `registry` and `joined` hold.
Left out, all for its sake: a record's offset, a folder for each bucket, files for several readers, statistics in a log,
fsync, any commit. A shard is by DuckDB's own hash, a part's name by that of its file's path.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import duckdb

from benchmarks.throughput.work import STREAMS, Work
from bootstrap import ROOT

MODULE = "benchmarks.throughput.limit"
THREADS = 2
LINES = (
    "read_csv('{log}', columns={{'payload': 'VARCHAR'}}, delim=E'\\x01', quote='', escape='', header=false, "
    "auto_detect=false, filename='path')"
)
IDS = {"primary": "['$.event_id']", "foreign": "['$.event_id', '$.query_id']"}
NO_KEY = ", NULL::VARCHAR AS match_key, NULL::BOOLEAN AS preferred"
NAMED = ", ids[2] AS primary_id, make_timestamp(split_part(ids[2], ':', 3)::BIGINT) AS primary_time"
LAND = """
CREATE TABLE {table} AS
SELECT event_id, event_time, strftime(date_trunc('hour', event_time), '%Y-%m-%dT%H%MZ') AS bucket,
  (hash(event_id) % 4)::INT AS shard, * EXCLUDE (ids, event_id, event_time, path),
  path, md5(path)[:16] AS source_partition, strlen(payload) + 1 AS length,
  1::BIGINT AS batch, 'main' AS replica, now() AS landed_at
FROM (
  SELECT *, ids[1] AS event_id, make_timestamp(split_part(ids[1], ':', 3)::BIGINT) AS event_time{named}
  FROM (SELECT json_extract_string(payload, {ids}) AS ids, payload, path FROM {lines})
)
"""
ONCE = '(SELECT * FROM "{table}" WHERE rowid IN (SELECT min(rowid) FROM "{table}" GROUP BY event_id))'
JOIN = f"""
CREATE TABLE joined AS
SELECT c.event_id, c.event_time, c.event_time::DATE AS event_date, c.bucket, c.shard, c.primary_id,
  q.event_time AS primary_time, 'shop/main/join/1' AS token, 'main' AS replica, now() AS published_at,
  c.payload AS foreign_record, q.payload AS primary_record
FROM {ONCE.format(table="foreign")} c JOIN {ONCE.format(table="primary")} q ON c.primary_id = q.event_id
"""
WRITTEN = {
    "primary": 'FROM "primary"',
    "foreign": 'FROM "foreign"',
    "joined": "SELECT * EXCLUDE (shard) FROM joined",
    "registry": "SELECT event_id, event_time, bucket, shard, token, 'joined' AS outcome FROM joined",
}
AS_PARQUET = "(FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1)"  # PyArrow's own level, which clickjoin takes


class Limit:
    """The process. It ends with whoever started it."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", MODULE], cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._answer()

    def run(self, work: Work, out: Path) -> dict[str, float]:
        """Fill a folder that is made; returns seconds by step. Errors: SystemExit where it failed."""
        asked = {"logs": [work.glob(stream) for stream in STREAMS], "out": str(out)}
        assert self._process.stdin
        print(json.dumps(asked), file=self._process.stdin, flush=True)
        return dict(json.loads(self._answer()))

    def _answer(self) -> str:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit("DuckDB has failed: see above")
        return line


@cache
def started() -> Limit:
    """The one that is ready. Its start and its imports are in no figure, as Spark's are in none of the others'."""
    return Limit()


def steps(logs: Sequence[str], out: Path) -> Iterator[tuple[str, str]]:
    """What is done, in its order: name of the step, SQL."""
    for table, log, named in zip(("primary", "foreign"), logs, (NO_KEY, NAMED), strict=True):
        lines = LINES.format(log=log)
        yield f"read {table}", LAND.format(table=f'"{table}"', ids=IDS[table], lines=lines, named=named)
    yield "dedupe and join", JOIN
    for table, rows in WRITTEN.items():
        yield f"write {table}", f"COPY ({rows}) TO '{out / table}.parquet' {AS_PARQUET}"


def fill(logs: Sequence[str], out: Path) -> dict[str, float]:
    """Fill a folder that is made, from logs of queries and of clicks; returns seconds by step."""
    out.mkdir(parents=True)
    seconds = {}
    with duckdb.connect() as database:
        database.execute(f"SET threads = {THREADS}; SET preserve_insertion_order = false; SET TimeZone = 'UTC'")
        for name, statement in steps(logs, out):
            start = time.perf_counter()
            database.execute(statement)
            seconds[name] = round(time.perf_counter() - start, 3)
    return seconds


if __name__ == "__main__":
    print("ready", flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps(fill(asked["logs"], Path(asked["out"]))), flush=True)
