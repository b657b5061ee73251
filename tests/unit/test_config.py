"""A pipeline's file: the shape that is a contract, and errors that name file, field and remedy."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from clickjoin.config import Lookback, load
from clickjoin.config.starter import STARTER
from clickjoin.config.types import SIZE
from clickjoin.model.errors import ConfigError
from tests.unit.contract import CONTRACT, RAW, changed, write


def test_contract(tmp_path: Path) -> None:
    p = load(write(tmp_path, CONTRACT))
    assert (p.pipeline, p.lake, p.root) == ("zozo", "/var/lake", "/var/lake/zozo")
    assert p.adapter == "clickjoin.joiner.adapter:BothRecords"
    source: dict[str, object] = {"kind": "files", "format": None, "separator": ",", "columns": None, "multiline": False}
    source |= {"records": None, "json_texts": ()}
    source |= {"ordered": False, "lookback": None, "relist": None}
    assert p.primary.model_dump() == {
        "source": source | {"path": "/logs/impressions/*.jsonl"},
        "event_id": ("event_id",),
        "event_time": "embedded",
        "where": (),
    }
    assert p.foreign.model_dump() == {
        "source": source | {"path": "/logs/clicks/*.jsonl"},
        "event_id": ("event_id",),
        "event_time": "embedded",
        "where": (),
        "match": None,
        "primary_id": ("query_id",),
        "primary_time": "embedded",
    }
    assert p.registry.model_dump() == {
        "identity": "id_and_time",
        "repeats": None,
        "retention": 259_200,
        "bucket": 3600,
        "shards": 4,
        "max_rows": None,
        "max_bytes": None,
    }
    retry = {
        "first_delay": 10,
        "backoff": 2,
        "max_delay": 3600,
        "max_age": 86_400,
        "max_attempts": 10,
        "until": "attempts",
    }
    assert p.retry.model_dump() == retry
    assert p.batch.model_dump() == {
        "max_events": 1_000_000,
        "max_bytes": 512_000_000,
        "lease": 60,
        "hand_over": 30,
        "trigger_interval": 1,
        "heartbeats": False,
        "driver_bytes": 16_000_000,
        "parallelism": 8,
        "catch_up_share": 0.5,
    }


def test_rows_are_kept_as_long_as_claims_unless_configured_otherwise(tmp_path: Path) -> None:
    p = load(write(tmp_path, RAW | {"retention": {"foreign": "5d"}}))
    assert (p.kept("primary"), p.kept("foreign")) == (259_200, 432_000)
    with pytest.raises(ConfigError, match=r"retention.primary is shorter than verify.window"):
        load(write(tmp_path, RAW | {"retention": {"primary": "1d"}}))


def test_defaults_are_the_contract(tmp_path: Path) -> None:
    short = {name: RAW[name] for name in ("pipeline", "lake", "primary", "foreign")}
    assert load(write(tmp_path, short)) == load(write(tmp_path, CONTRACT))


def test_starter_is_valid(tmp_path: Path) -> None:
    p = load(write(tmp_path, STARTER))
    assert p.primary.source.path == f"{tmp_path}/logs/queries/*.jsonl"
    assert p.root == f"{tmp_path}/lake/clicks"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("250ms", 0.25), ("10s", 10), ("1.5m", 90), ("2h", 7200), ("3d", 259_200), ("1w", 604_800), (" 5 s ", 5)],
)
def test_durations(tmp_path: Path, text: str, seconds: float) -> None:
    assert load(write(tmp_path, changed("retry.max_age", text))).retry.max_age == seconds


@pytest.mark.parametrize(
    ("text", "size"),
    [("1B", 1), ("2KB", 2000), ("256MB", 256_000_000), ("1GB", 10**9), ("1KiB", 1024), ("4 mib", 4 << 20), (77, 77)],
)
def test_sizes(tmp_path: Path, text: Any, size: int) -> None:
    assert load(write(tmp_path, changed("batch.max_bytes", text))).batch.max_bytes == size
    assert isinstance(text, int) or re.search(SIZE, text), "editors would mark it"


@pytest.mark.parametrize("value", ["embedded", "uuid7", "query_time"])
def test_primary_time(tmp_path: Path, value: str) -> None:
    p = load(write(tmp_path, changed("foreign.primary_time", value)))
    assert p.foreign.primary_time == value
    assert p.spec("foreign", 0).primary_time == value


def test_primary_time_within(tmp_path: Path) -> None:
    p = load(write(tmp_path, changed("foreign.primary_time", {"lookback": "2h"})))
    assert p.foreign.primary_time == Lookback(lookback="2h")  # type: ignore[arg-type]
    assert p.foreign.primary_time.lookback == 7200
    assert p.spec("foreign", 0).primary_time is None


@pytest.mark.parametrize(
    ("lake", "path", "root", "found"),
    [
        ("lake", "logs/*.jsonl", "{here}/lake/zozo", "{here}/logs/*.jsonl"),
        ("./lake/", "./a/**/*.csv", "{here}/lake/zozo", "{here}/a/**/*.csv"),
        ("../lake", "../logs/x.jsonl", "{here}/../lake/zozo", "{here}/../logs/x.jsonl"),
        ("/abs", "/logs/*", "/abs/zozo", "/logs/*"),
        ("file:///abs", "file:///logs/*", "/abs/zozo", "/logs/*"),
    ],
)
def test_relative_paths_are_from_the_file(tmp_path: Path, lake: str, path: str, root: str, found: str) -> None:
    raw = changed("primary.source.path", path) | {"lake": lake}
    p = load(write(tmp_path, raw))
    assert p.root == root.format(here=tmp_path)
    assert p.primary.source.path == found.format(here=tmp_path)


def test_spec_limits(tmp_path: Path) -> None:
    limits = {"earliest": "2019-01-01", "max_skew": "5m", "max_record": "1KB"}
    spec = load(write(tmp_path, changed("limits", limits))).spec("primary", 1_000_000)
    assert spec.earliest_micros == datetime(2019, 1, 1, tzinfo=UTC).timestamp() * 1e6
    assert (spec.latest_micros, spec.max_record) == (301_000_000, 1000)
    assert (spec.primary_id, spec.primary_time) == ((), None)


@pytest.mark.parametrize(
    ("lake", "path"), [("lake", "logs/*"), ("logs/lake", "logs/clicks/*"), ("logs2", "logs/*"), ("lake", "/x")]
)
def test_a_lake_beside_a_log_folder(tmp_path: Path, lake: str, path: str) -> None:
    assert load(write(tmp_path, changed("foreign.source.path", path) | {"lake": lake}))
