"""Flink's delta join over tables of Fluss: it keeps no rows of its own, but looks them up in both tables."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.json as json_lines
import pyarrow.parquet as pq

from benchmarks.flink.shop import COLUMNS, FILES
from benchmarks.flink.warm import Flink, free_port
from benchmarks.throughput.work import STREAMS, Seen, Work, check

HINTS = (
    "'client.lookup.batch-timeout' = '2 ms', 'client.lookup.max-batch-size' = '512', "
    "'client.lookup.queue-size' = '4096'"
)
# A look-up waits up to 100 ms for others to share its request, of 100 that Flink lets be under way: a task is then held
# to some thousand lines a second. `as-shipped` leaves that.
LOOKUPS = {
    "as-shipped": ("", {}),
    "tuned": (f"{HINTS}, ", {"table.exec.async-lookup.buffer-capacity": "2000"}),
}
CATALOG = "CREATE CATALOG fluss WITH ('type' = 'fluss', 'bootstrap.servers' = '{servers}')"
LOG = "CREATE TEMPORARY TABLE {name}_log (event_id STRING, {columns}, payload STRING) WITH ({files}, 'format' = 'json')"
# The first of each id stays; the key's first part, by which rows lie in buckets, is what is looked up by.
TABLES = """
CREATE TABLE IF NOT EXISTS fluss.shop.queries (
  event_id STRING NOT NULL, event_time TIMESTAMP_LTZ(3), results BIGINT, payload STRING,
  PRIMARY KEY (event_id) NOT ENFORCED
) WITH ({lookups}'bucket.num' = '2', 'table.merge-engine' = 'first_row');
CREATE TABLE IF NOT EXISTS fluss.shop.clicks (
  query_id STRING NOT NULL, event_id STRING NOT NULL, event_time TIMESTAMP_LTZ(3), `position` BIGINT, payload STRING,
  PRIMARY KEY (query_id, event_id) NOT ENFORCED
) WITH ({lookups}'bucket.num' = '2', 'bucket.key' = 'query_id', 'table.merge-engine' = 'first_row');
CREATE TABLE IF NOT EXISTS fluss.shop.joined (
  primary_id STRING NOT NULL, event_id STRING NOT NULL, event_time TIMESTAMP_LTZ(3), `position` BIGINT,
  click_payload STRING, results BIGINT, query_payload STRING,
  PRIMARY KEY (primary_id, event_id) NOT ENFORCED
) WITH ('bucket.num' = '2', 'table.merge-engine' = 'first_row')
"""
PAIRS = "CREATE TEMPORARY TABLE pairs (event_id STRING, primary_id STRING) WITH ({files}, 'format' = 'json')"
TIME = "TO_TIMESTAMP_LTZ(CAST(SPLIT_INDEX(event_id, ':', 2) AS BIGINT) / 1000, 3)"
INSERTS = [
    f"INSERT INTO fluss.shop.queries SELECT event_id, {TIME}, results, payload FROM queries_log",
    f"INSERT INTO fluss.shop.clicks SELECT query_id, event_id, {TIME}, `position`, payload FROM clicks_log",
    """
INSERT INTO fluss.shop.joined
SELECT c.query_id, c.event_id, c.event_time, c.`position`, c.payload, q.results, q.payload
FROM fluss.shop.clicks c JOIN fluss.shop.queries q ON c.query_id = q.event_id
  AND c.event_time BETWEEN q.event_time AND q.event_time + INTERVAL '2' HOUR
""",
]


@dataclass(frozen=True)
class Ended:
    """Seconds from submission until all was joined and kept; bytes of Flink's own state then; what it made."""

    seconds: float
    state: int
    seen: Seen


def order(work: Work, servers: str, lookups: str, folder: Path) -> dict[str, Any]:
    """One run for fluss_job.py, in a folder of its own."""
    hints, settings = LOOKUPS[lookups]
    logs = [
        LOG.format(name=name, columns=COLUMNS[name], files=FILES.format(folder=work.folder / "lanes", name=name))
        for name in STREAMS
    ]
    ports = [free_port() for _ in range(3)]
    return {
        "before": [
            CATALOG.format(servers=servers), "CREATE DATABASE IF NOT EXISTS fluss.shop", *logs,
            PAIRS.format(files=FILES.format(folder=folder, name="pairs")), *TABLES.format(lookups=hints).split(";"),
        ],
        "after": "DROP DATABASE fluss.shop CASCADE",
        "inserts": INSERTS,
        "count": "SELECT COUNT(*) FROM fluss.shop.joined",
        "save": "INSERT INTO pairs SELECT event_id, primary_id FROM fluss.shop.joined",
        "lines": sum(work.truth[stream]["events"] for stream in STREAMS),
        "ports": ports,
        "settings": settings | {
            "parallelism.default": "2",
            "execution.checkpointing.interval": "10 s",
            "execution.checkpointing.storage": "filesystem",
            "execution.checkpointing.dir": f"file://{folder}/checkpoints",
            "io.tmp.dirs": f"{folder}/local",
            "pipeline.object-reuse": "true",
            "rest.bind-address": "127.0.0.1",
            "rest.address": "127.0.0.1",
            "rest.bind-port": str(ports[0]),
            "jobmanager.bind-host": "127.0.0.1",
            "taskmanager.bind-host": "127.0.0.1",
            "metrics.fetcher.update-interval": "200",
            "table.optimizer.delta-join.strategy": "FORCE",
        },
    }  # fmt: skip


def join(flink: Flink, work: Work, servers: str, lookups: str, folder: Path) -> Ended:
    """One run. Errors: SystemExit where it failed, was no delta join, lost or doubled an event."""
    own = Path(tempfile.mkdtemp(dir=folder))
    done = flink.ask(order(work, servers, lookups, own))
    if "DeltaJoin(" not in done["plan"]:
        raise SystemExit(f"not a delta join:\n{done['plan']}")
    made = own / "pairs.parquet"
    parts = [path for path in (own / "pairs").rglob("*") if path.is_file()]  # hidden ones too: the job was cancelled
    pq.write_table(pa.concat_tables([json_lines.read_json(path) for path in parts if path.stat().st_size]), made)
    seen = check(work, str(made))
    shutil.rmtree(own)
    if not seen.exactly_once:
        raise SystemExit(f"the delta join is not exactly once, so there are no figures: {seen}")
    return Ended(done["seconds"], done["state"], seen)
