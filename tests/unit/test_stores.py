"""Where S3 is: by a pipeline's section, field by field, else by the environment; and never who asks."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
import yaml

from clickjoin.config import load
from clickjoin.lake.store_options import store_options
from clickjoin.model import places
from clickjoin.model.errors import ConfigError
from clickjoin.model.places import Store, declare, declared, store_of
from clickjoin.spark import object_store

ENVIRONMENT = {"AWS_ENDPOINT_URL": "https://everywhere.example", "AWS_REGION": "eu-west-1"}


@pytest.fixture(autouse=True)
def undeclared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "_declared", {})


@pytest.fixture
def section(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    stream = {"event_id": "id", "event_time": "at"}
    whole: dict[str, Any] = {
        "pipeline": "p", "engine": "arrow", "lake": "s3://lakes/here",
        "primary": {"source": {"kind": "files", "path": "q/*"}, **stream},
        "foreign": {"source": {"kind": "files", "path": "c/*"}, **stream, "primary_id": "q", "primary_time": "at"},
    }  # fmt: skip

    def write(logs: str = "c/*", **fields: Any) -> Path:
        file = tmp_path / "p.yaml"
        foreign = whole["foreign"] | {"source": {"kind": "files", "path": logs}}
        file.write_text(yaml.safe_dump(whole | {"foreign": foreign} | ({"s3": fields} if fields else {})))
        return file

    return write


def test_a_section_goes_before_the_environment_field_by_field(section: Any) -> None:
    load(section(endpoint="http://127.0.0.1:9000/"))
    assert store_of("s3://lakes/here/p/joined", ENVIRONMENT) == Store("http://127.0.0.1:9000", "eu-west-1", True)
    assert store_of("s3://lakes/here/other", ENVIRONMENT) == Store("https://everywhere.example", "eu-west-1", True)
    assert store_of("s3://lakes/here/p2", {}) == Store(None, None, False)


def test_a_file_that_says_it_no_more(section: Any) -> None:
    load(section(region="eu-west-3"))
    assert declared("s3://lakes/here/p") == Store(None, "eu-west-3", None)
    load(section())
    assert declared("s3://lakes/here/p") is None


def test_logs_lie_where_the_section_says(section: Any) -> None:
    load(section("s3://logs/clicks/dt=*/*.jsonl", endpoint="http://127.0.0.1:9000", region="us-east-1"))
    of_pipeline = Store("http://127.0.0.1:9000", "us-east-1", True)
    for place in ("s3://logs/clicks/dt=*/*.jsonl", "s3://logs/clicks/dt=2026-11-24/a.jsonl"):
        assert store_of(place, ENVIRONMENT) == of_pipeline
    assert store_of("s3://logs/others/a.jsonl", ENVIRONMENT) != of_pipeline


def test_the_nearest_place_counts() -> None:
    declare("s3://b/a", Store("http://one", None, None))
    declare("s3://b/a/c", Store("http://two", None, None))
    assert store_of("s3://b/a/c/d", {}).endpoint == "http://two"
    assert store_of("s3://b/a/d", {}).endpoint == "http://one"
    assert store_of("s3://b/ab", {}).endpoint is None


def test_buckets_in_the_hosts_name(section: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    root = load(section(endpoint="https://s3.example", path_style=False)).root
    options = store_options(root)
    assert options
    assert (options["AWS_ENDPOINT_URL"], options["AWS_VIRTUAL_HOSTED_STYLE_REQUEST"]) == (
        "https://lakes.s3.example",
        "true",
    )
    monkeypatch.setenv("AWS_ENDPOINT_URL", "https://s3.example")
    monkeypatch.setenv("AWS_VIRTUAL_HOSTED_STYLE_REQUEST", "true")
    assert store_of("s3://elsewhere").path_style is False


def test_delta_rs_is_given_a_server_without_tls(section: Any) -> None:
    options = store_options(load(section(endpoint="http://127.0.0.1:9000", region="us-east-1")).root)
    assert options == {
        "AWS_FORCE_CREDENTIAL_LOAD": "true", "AWS_REGION": "us-east-1", "AWS_ENDPOINT_URL": "http://127.0.0.1:9000",
        "AWS_ALLOW_HTTP": "true", "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "false",
    }  # fmt: skip
    assert store_options("/a/folder") is None


class Session:
    """Keeps what it is set to."""

    def __init__(self) -> None:
        self.found: dict[str, str] = {}
        self.conf = self

    def set(self, name: str, value: str) -> None:
        self.found[name] = value


def test_a_session_is_set_up_for_the_lakes_bucket_alone(section: Any) -> None:
    session: Any = Session()
    object_store.reach(session, load(section()).root)
    assert session.found == {}
    object_store.reach(session, load(section(endpoint="http://127.0.0.1:9000", region="us-east-1")).root)
    assert session.found == {
        "fs.s3a.bucket.lakes.endpoint": "http://127.0.0.1:9000",
        "fs.s3a.bucket.lakes.endpoint.region": "us-east-1",
        "fs.s3a.bucket.lakes.path.style.access": "true",
        "fs.s3a.bucket.lakes.connection.ssl.enabled": "false",
    }


@pytest.mark.parametrize(
    "name", ["access_key", "AWS_ACCESS_KEY_ID", "secret", "secret_access_key", "password", "session_token", "key"]
)
def test_what_looks_like_a_secret_is_refused_by_name_alone(section: Any, name: str) -> None:
    with pytest.raises(
        ConfigError, match=rf"s3: {name}: credentials are no part of a pipeline's file.*AWS_PROFILE"
    ) as no:
        load(section(endpoint="http://a", **{name: "hush-hush"}))
    assert "hush" not in str(no.value)


def test_a_secret_in_the_endpoint_is_refused_and_not_shown(section: Any) -> None:
    with pytest.raises(ConfigError, match=r"s3\.endpoint: holds a user or a password") as no:
        load(section(endpoint="http://me:hush@127.0.0.1:9000"))
    assert "hush" not in str(no.value)


@pytest.mark.parametrize("wrong", ["127.0.0.1:9000", "s3://a", "http://a/bucket", "http://", "ftp://a"])
def test_an_endpoint_that_is_none(section: Any, wrong: str) -> None:
    with pytest.raises(ConfigError, match=r"s3\.endpoint: is no server's address; write http://HOST:PORT"):
        load(section(endpoint=wrong))


def test_a_field_that_is_misspelt(section: Any) -> None:
    with pytest.raises(ConfigError, match=r"s3\.endpoints: no such field \(did you mean `endpoint`\?\)"):
        load(section(endpoints="http://a"))


def test_it_travels_as_plain_data() -> None:
    store = Store("http://a", "b", True)
    assert pickle.loads(pickle.dumps(store)) == store
