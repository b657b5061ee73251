"""The contender: clicks and queries as Flink SQL joins them, each as Flink's own documents show it.

Repeats are dropped by ROW_NUMBER() = 1, the first is kept; an interval join; exactly-once checkpoints; Parquet out.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks.flink.warm import STATES, Flink, committed, steady
from benchmarks.throughput.topics import topic_of
from benchmarks.throughput.work import STREAMS, Seen, Work, check

LANES = 2
KEPT = {"table.exec.state.ttl": "3 h"}
COLUMNS = {"queries": "results BIGINT", "clicks": "query_id STRING, `position` BIGINT"}
SOURCE = """
CREATE TABLE {name}_log (
  event_id STRING, {columns}, payload STRING,
  event_time AS TO_TIMESTAMP_LTZ(CAST(SPLIT_INDEX(event_id, ':', 2) AS BIGINT) / 1000, 3),
  seen AS PROCTIME(),
  WATERMARK FOR event_time AS event_time - INTERVAL '1' MINUTE
) WITH ({connector}, 'format' = 'json')
"""
FILES = "'connector' = 'filesystem', 'path' = 'file://{folder}/{name}'"
TOPIC = (
    "'connector' = 'kafka', 'topic' = '{topic}', 'properties.bootstrap.servers' = '{servers}', "
    "'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset'"
)
FIRST = """
CREATE TEMPORARY VIEW {name} AS SELECT * FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY event_id ORDER BY seen ASC) AS copy FROM {name}_log
) WHERE copy = 1
"""
SINK = """
CREATE TABLE joined (
  event_id STRING, primary_id STRING, event_time TIMESTAMP_LTZ(3),
  `position` BIGINT, click_payload STRING, results BIGINT, query_payload STRING
) WITH ('connector' = 'filesystem', 'path' = 'file://{out}', 'format' = 'parquet')
"""
JOIN = """
INSERT INTO joined
SELECT c.event_id, c.query_id, c.event_time, c.`position`, c.payload, q.results, q.payload
FROM clicks c JOIN queries q ON c.query_id = q.event_id
  AND c.event_time BETWEEN q.event_time AND q.event_time + INTERVAL '2' HOUR
"""


@dataclass(frozen=True)
class Ended:
    """A job that has ended: seconds from submission to its end, lines a second in its steady part, what it made."""

    seconds: float
    steady: float
    seen: Seen


def join(flink: Flink, work: Work, state: str, folder: Path, servers: str = "") -> Ended:
    """Run the job on logs that `lay` has laid. Errors: SystemExit where it failed, lost or doubled an event.

    `servers`: the broker whose topics hold the same lines (see topics.fill); then they are read from there.
    """
    own = Path(tempfile.mkdtemp(dir=folder))
    before = []
    for name in STREAMS:
        files, topic = FILES.format(folder=_lanes(work), name=name), topic_of(work, name)
        connector = TOPIC.format(topic=topic, servers=servers) if servers else files
        before += [SOURCE.format(name=name, columns=COLUMNS[name], connector=connector), FIRST.format(name=name)]
    done = flink.run([*before, SINK.format(out=own / "out")], JOIN, STATES[state] | KEPT, own)
    seen = check(work, committed(own / "out", own / "delta"))
    shutil.rmtree(own)
    if not seen.exactly_once:
        raise SystemExit(f"Flink SQL with {state} state is not exactly once, so there are no figures: {seen}")
    return Ended(done.seconds, steady(done.progress, work.events), seen)


def lay(work: Work) -> None:
    """Lay the same lines beside the logs as Flink can follow them: a file of the whole day for each reader.

    Flink hands the files of a folder to its readers in no order, so parts that follow one another in time would come
    hours late; partitions of a log, which is what it is made for, each grow in time.
    """
    for stream in STREAMS:
        parts = sorted((work.folder / stream).glob("*.jsonl"))
        lines = [line for part in parts for line in part.read_bytes().splitlines(keepends=True)]
        folder = _lanes(work) / stream
        folder.mkdir(parents=True)
        for lane in range(LANES):
            (folder / f"{lane}.jsonl").write_bytes(b"".join(lines[lane::LANES]))


def _lanes(work: Work) -> Path:
    return work.folder / "lanes"
