"""Shards by a timeline of event times (Photon, section 2.2.2): an event keeps its shard when the number grows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickjoin.config import Pipeline
from clickjoin.engines.arrow import ArrowTables
from clickjoin.model.errors import ConfigError, LakeError
from clickjoin.model.shards import Timeline
from clickjoin.registry.shards import fence, load_timeline, start_timeline
from clickjoin.schemas import BATCHES, TIMELINE

T0 = datetime(1970, 1, 1, tzinfo=UTC)
T1 = datetime(2026, 1, 1, tzinfo=UTC)
T2 = datetime(2026, 2, 1, tzinfo=UTC)
SOURCE = {"kind": "files", "path": "/logs/*.jsonl"}
GROWN = Timeline(((T0, 4), (T1, 8), (T2, 3)))


@pytest.mark.parametrize(
    ("at", "shards"),
    [
        (T0 - timedelta(days=1), 4),
        (T0, 4),
        (T1 - timedelta(microseconds=1), 4),
        (T1, 8),
        (T2 - timedelta(microseconds=1), 8),
        (T2, 3),
        (T2 + timedelta(days=999), 3),
    ],
)
def test_shards_at(at: datetime, shards: int) -> None:
    assert GROWN.shards_at(at) == shards


@given(st.text(), st.datetimes(datetime(1970, 1, 2), datetime(2100, 1, 1), timezones=st.just(UTC)))
def test_shard_of(event_id: str, at: datetime) -> None:
    shard = GROWN.shard_of(event_id, at)
    assert shard == crc32(event_id.encode()) % GROWN.shards_at(at)
    # A new entry moves no event before it.
    if at < T2:
        assert Timeline(GROWN.entries[:2]).shard_of(event_id, at) == shard


def test_sql_of_one_entry() -> None:
    assert Timeline(((T0, 4),)).sql() == "CAST(crc32(encode(event_id, 'UTF-8')) % (4) AS INT)"


def test_sql_nests_the_newest_first() -> None:
    assert GROWN.sql() == (
        "CAST(crc32(encode(event_id, 'UTF-8')) % ("
        "CASE WHEN event_time >= TIMESTAMP '2026-02-01 00:00:00.000000+00:00' THEN 3 ELSE "
        "CASE WHEN event_time >= TIMESTAMP '2026-01-01 00:00:00.000000+00:00' THEN 8 ELSE 4 END END) AS INT)"
    )


def _pipeline(shards: int, bucket: str = "1h") -> Pipeline:
    primary = {"source": SOURCE, "event_id": "event_id", "event_time": "embedded"}
    foreign = {**primary, "primary_id": "query_id", "primary_time": "embedded"}
    registry = {"shards": shards, "bucket": bucket}
    return Pipeline.model_validate(
        {
            "pipeline": "p",
            "engine": "arrow",
            "lake": "/lake",
            "primary": primary,
            "foreign": foreign,
            "registry": registry,
        }
    )


def test_another_width_of_bucket_is_refused(tmp_path: Path) -> None:
    delta = ArrowTables(str(tmp_path))
    delta.create(TIMELINE)
    start_timeline(delta, _pipeline(4), T1)
    with pytest.raises(ConfigError, match=r"registry.bucket is 900 .* begun with 3600"):
        start_timeline(delta, _pipeline(4, "15m"), T2)


def test_started_once(tmp_path: Path) -> None:
    delta = ArrowTables(str(tmp_path))
    delta.create(TIMELINE)
    with pytest.raises(LakeError, match=r"holds no entry\. Run `clickjoin init`"):
        load_timeline(delta)
    start_timeline(delta, _pipeline(4), T1)
    start_timeline(delta, _pipeline(9), T2)
    assert load_timeline(delta) == Timeline(((T0, 4),))


def test_loaded_in_order_of_time(tmp_path: Path) -> None:
    delta = ArrowTables(str(tmp_path))
    delta.create(TIMELINE)
    delta.create(BATCHES)
    start_timeline(delta, _pipeline(4), T1)
    for since, shards in ((T2, 3), (T1, 8)):
        delta.append("shard_timeline", [{"from_time": since, "shards": shards, "added_at": T2}])
        assert since not in dict(load_timeline(delta).entries)  # proposed, and not in force
        delta.commit_txn_only("journal", fence(since, shards))
    assert load_timeline(delta) == GROWN
