"""A whole pipeline's file, and how to change one field of it."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import yaml

CONTRACT = """\
pipeline: zozo
lake: file:///var/lake
primary:
  source: {kind: files, path: "/logs/impressions/*.jsonl"}
  event_id: event_id
  event_time: embedded
foreign:
  source: {kind: files, path: "/logs/clicks/*.jsonl"}
  event_id: event_id
  event_time: embedded
  primary_id: query_id
  primary_time: embedded
registry: {retention: 3d, bucket: 1h, shards: 4}
retry: {first_delay: 10s, backoff: 2, max_delay: 1h, max_age: 1d, max_attempts: 10}
batch: {max_events: 1000000, max_bytes: 512MB, lease: 60s}
adapter: clickjoin.joiner.adapter:BothRecords
"""
RAW: dict[str, Any] = yaml.safe_load(CONTRACT)


def write(folder: Path, raw: Any) -> Path:
    file = folder / "p.yaml"
    file.write_text(raw if isinstance(raw, str) else yaml.safe_dump(raw), encoding="utf-8")
    return file


def changed(path: str, value: Any) -> dict[str, Any]:
    """The contract with one field set; None takes it out."""
    raw = deepcopy(RAW)
    *above, last = path.split(".")
    place = raw
    for name in above:
        place = place.setdefault(name, {})
    if value is None:
        place.pop(last)
    else:
        place[last] = value
    return raw
