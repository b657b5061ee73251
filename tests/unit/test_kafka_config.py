"""What a pipeline's file says of a topic: what it may hold, and what is refused there, with the remedy."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from clickjoin.config import Files, Kafka, load
from clickjoin.kernel.chunk import Link
from clickjoin.kernel.handshake import VersionMismatch, checked
from clickjoin.kernel.kafka.connection import settings
from clickjoin.model.errors import ConfigError, SourceError
from clickjoin.sources.kafka.source import link_of
from clickjoin.sources.open import in_files

TOPIC = {"kind": "kafka", "servers": "a:9092", "topic": "clicks"}


def file(folder: Path, **more: Any) -> Path:
    stream = {"event_id": "event_id", "event_time": "embedded"}
    raw = {
        "pipeline": "p",
        "engine": "arrow",
        "lake": "lake",
        "primary": {"source": TOPIC | {"topic": "queries"}, **stream},
        "foreign": {"source": TOPIC | more, **stream, "primary_id": "query_id", "primary_time": "embedded"},
    }
    path = folder / "p.yaml"
    path.write_text(yaml.safe_dump(raw))
    return path


def test_metadata(tmp_path: Path) -> None:
    source = load(file(tmp_path, metadata=["key", "timestamp"])).foreign.source
    assert isinstance(source, Kafka)
    assert source.metadata == ("key", "timestamp")
    with pytest.raises(ConfigError, match="metadata is for records of JSON"):
        load(file(tmp_path, metadata=["key"], format="csv", columns=["event_id", "query_id"]))
    with pytest.raises(ConfigError, match="offset"):
        load(file(tmp_path, metadata=["offset"]))


def test_a_topic(tmp_path: Path) -> None:
    more = {"servers": ["a:9092", "b:9092"], "from": datetime(2026, 11, 1, tzinfo=UTC), "group": "shop"}
    source = load(file(tmp_path, **more, options={"check.crcs": True, "fetch.wait.max.ms": 10})).foreign.source
    assert isinstance(source, Kafka)
    assert (source.servers, source.begin, source.path) == ("a:9092,b:9092", more["from"], "kafka:clicks")
    assert source.options == {"check.crcs": "true", "fetch.wait.max.ms": "10"}
    assert link_of(source, "p-main").group == "shop-p-main"


@pytest.mark.parametrize(
    ("more", "remedy"),
    [
        ({"options": {"sasl.password": "pw0"}}, "set CLICKJOIN_KAFKA_SASL_PASSWORD in the environment"),
        ({"options": {"ssl.key.pem": "pw0"}, "environment": "SHOP"}, "set SHOP_SSL_KEY_PEM in the environment"),
        ({"options": {"sasl.jaas.config": "pw0"}}, "is a secret, and this file is no place for one"),
        ({"options": {"auto.offset.reset": "earliest"}}, "where to begin is said by `from`"),
        ({"options": {"isolation.level": "read_uncommitted"}}, "what is not committed is never read"),
        ({"options": {"group.id": "g"}}, "write it as `group`"),
        ({"topic": "a/b"}, "should match pattern"),
        ({"servers": ""}, "at least 1 character"),
        ({"format": "csv"}, "name its fields in `columns`"),
        ({"columns": ["a"]}, "are for CSV; remove them"),
        ({"format": "jsonl"}, "write json or csv (did you mean `json`?)"),
        ({"path": "x"}, "no such field"),
        ({"topics": "x"}, "no such field (did you mean `topic`?)"),
        ({"from": "yesterday"}, "foreign.source.from"),
        ({"topic": "queries"}, "both streams read queries; say with `where`"),
    ],
)
def test_what_is_refused_is_named_with_its_remedy(tmp_path: Path, more: dict[str, Any], remedy: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(file(tmp_path, **more))
    assert remedy in str(caught.value)
    assert "foreign.source" in str(caught.value)
    assert "pw0" not in str(caught.value)


def test_secrets_come_from_the_environment_by_name_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What travels with a plan has no secret in it; an executor without the variable says which one."""
    monkeypatch.setenv("CLICKJOIN_KAFKA_SASL_PASSWORD", "pw0")
    source = load(file(tmp_path, options={"sasl.username": "u"})).foreign.source
    assert isinstance(source, Kafka)
    link = link_of(source)
    assert "pw0" not in repr(link)
    assert settings(link, {"CLICKJOIN_KAFKA_SASL_PASSWORD": "pw1"})["sasl.password"] == "pw1"
    with pytest.raises(SourceError, match=r"CLICKJOIN_KAFKA_SASL_PASSWORD is not set here, and holds sasl\.password"):
        settings(link, {})
    assert "sasl.password" not in settings(Link("a:9092", "g"), {})


def test_the_same_records_in_files() -> None:
    """As a backfill from raw logs reads them."""
    assert in_files(Kafka.model_validate(TOPIC), "/raw/*") == Files(kind="files", path="/raw/*", format="jsonl")
    csv = Kafka.model_validate(TOPIC | {"format": "csv", "separator": ";", "columns": ["a", "b"]})
    assert in_files(csv, "/raw/*") == Files(
        kind="files", path="/raw/*", format="csv", separator=";", columns=("a", "b")
    )


def test_an_executor_without_the_package_says_so() -> None:
    with pytest.raises(VersionMismatch, match=r"^no-such-package is not installed there\.$"):
        list(checked(iter, ["confluent-kafka", "no-such-package"])(iter(())))
    assert list(checked(iter, ["confluent-kafka"])(iter(()))) == []
