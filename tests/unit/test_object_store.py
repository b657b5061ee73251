"""What Spark is set to for S3, and that its JARs are asked for by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from clickjoin.model.errors import ConfigError
from clickjoin.spark import jars
from clickjoin.spark.object_store import settings

A3 = "spark.hadoop.fs.s3a."
ENDPOINT = {"AWS_ENDPOINT_URL": "http://127.0.0.1:9000", "AWS_REGION": "eu-west-1", "AWS_SECRET_ACCESS_KEY": "hush"}


def test_a_server_of_ones_own_is_reached_by_paths() -> None:
    found = settings(ENDPOINT)
    names = ("endpoint", "path.style.access", "connection.ssl.enabled", "endpoint.region")
    assert [found[A3 + name] for name in names] == ["http://127.0.0.1:9000", "true", "false", "eu-west-1"]


def test_the_endpoint_for_s3_goes_before_that_for_all() -> None:
    found = settings(ENDPOINT | {"AWS_ENDPOINT_URL_S3": "https://s3.example"})
    assert (found[A3 + "endpoint"], found[A3 + "connection.ssl.enabled"]) == ("https://s3.example", "true")


def test_amazons_own_needs_a_region_alone() -> None:
    found = settings({"AWS_DEFAULT_REGION": "us-west-2"})
    assert found[A3 + "endpoint.region"] == "us-west-2"
    assert A3 + "endpoint" not in found
    assert A3 + "path.style.access" not in found


def test_no_secret_is_in_a_setting() -> None:
    assert "hush" not in str(settings(ENDPOINT))


def test_executors_hear_where_the_server_is() -> None:
    own = {name: value for name, value in settings(ENDPOINT).items() if name.startswith("spark.executorEnv.")}
    assert own == {
        "spark.executorEnv.AWS_ENDPOINT_URL": "http://127.0.0.1:9000", "spark.executorEnv.AWS_REGION": "eu-west-1"
    }  # fmt: skip


def test_both_schemes_commit_by_the_conditional_store() -> None:
    found = settings({})
    stores = {found[f"spark.delta.logStore.{scheme}.impl"] for scheme in ("s3", "s3a")}
    assert stores == {"clickjoin.storage.S3LogStore"}


def test_jars_that_nobody_fetched_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "delta-spark.jar").touch()
    (tmp_path / jars.LOG_STORE).touch()
    monkeypatch.setenv("CLICKJOIN_JARS", str(tmp_path))
    with pytest.raises(ConfigError, match="make s3"):
        jars.jars(s3=True)
    (tmp_path / "s3").mkdir()
    (tmp_path / "s3/hadoop-aws.jar").touch()
    assert "hadoop-aws.jar" in jars.jars(s3=True)
    assert "hadoop-aws.jar" not in jars.jars()
