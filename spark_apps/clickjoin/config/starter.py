"""The pipeline file that `clickjoin init` writes."""

from __future__ import annotations

import glob
import json
from pathlib import Path

STARTER = """\
# A pipeline: which two streams to join, and where to put the result. Relative paths are from this file.
# `clickjoin schema --config-file` prints a JSON Schema for editors; `clickjoin validate` checks what you wrote.
pipeline: clicks
lake: ./lake
engine: spark                         # or arrow: lower latency, on a disk or S3 of your own
primary:                              # looked up: queries, impressions
  source: {kind: files, path: "./logs/queries/*.jsonl"}
  event_id: event_id                  # the column that names an event
  event_time: embedded                # embedded in the id (ip:pid:micros) | uuid7 | a column's name
foreign:                              # looks up: clicks
  source: {kind: files, path: "./logs/clicks/*.jsonl"}
  event_id: event_id
  event_time: embedded
  primary_id: query_id                # the column that names the primary event
  primary_time: embedded              # embedded | uuid7 | a column's name | {lookback: 2h} before the foreign event
registry: {retention: 3d, bucket: 1h, shards: 4}
retry: {first_delay: 10s, backoff: 2, max_delay: 1h, max_age: 1d, max_attempts: 10}
batch: {max_events: 1000000, max_bytes: 512MB, lease: 60s}
adapter: clickjoin.joiner.adapter:BothRecords
"""


def starter(folder: Path) -> str:
    """The file with absolute paths below a folder, so that it can be copied to another place."""
    lake = json.dumps(str(folder / "lake"), ensure_ascii=False)
    logs = json.dumps(glob.escape(str(folder / "logs")), ensure_ascii=False)[:-1]
    return STARTER.replace("lake: ./lake", f"lake: {lake}").replace('"./logs', logs)
