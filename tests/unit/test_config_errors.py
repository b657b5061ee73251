"""What is wrong with a pipeline's file: one line for each mistake, with file, field and remedy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from clickjoin.config import Pipeline, json_schema, load
from clickjoin.config.starter import STARTER
from clickjoin.model.errors import ConfigError
from clickjoin.yaml_file import parse
from tests.unit.contract import CONTRACT, RAW, changed, write

BAD = [
    ("pipeline", None, "is missing; add it"),
    ("pipeline", "Zo zo", "should match pattern"),
    ("lake", "", "at least 1 character"),
    ("primary", None, "is missing; add it"),
    ("primary.source.kind", "ftp", "'ftp' is unknown here; write files, kafka, delta or pipeline"),
    ("primary.source.kind", 3, "primary.source.kind: 3 is unknown here; write files, kafka, delta or pipeline"),
    ("primary.source.kind", "kinesis", "a queue is not read itself; let its connector write files"),
    ("primary.source.kind", "Kafka", "write files, kafka, delta or pipeline (did you mean `kafka`?)"),
    (
        "primary.source.kind",
        "s3",
        "write files, kafka, delta or pipeline (write `kind: files`, and s3://BUCKET/KEYS in `path`)",
    ),
    (
        "primary.source.kind",
        "csv",
        "write files, kafka, delta or pipeline (that is a format: write it as `format`, beside `kind: files`)",
    ),
    (
        "primary.source.kind",
        "file",
        "'file' is unknown here; write files, kafka, delta or pipeline (did you mean `files`?)",
    ),
    ("primary.source.path", "", "at least 1 character"),
    ("primary.source.format", "xml", "'xml' is unknown here; write jsonl, csv or parquet"),
    ("primary.source.format", "json", "'json' is unknown here; write jsonl, csv or parquet (did you mean `jsonl`?)"),
    ("primary.source.pth", "x", "no such field (did you mean `path`?)"),
    ("retry.max_atempts", 3, "no such field (did you mean `max_attempts`?)"),
    ("batch.colour", "red", "remove it, or check its spelling: there are max_events, max_bytes, lease, "),
    ("retries", {}, "no such field (did you mean `retry`?)"),
    ("primary.event_id", "", "at least 1 character"),
    ("primary.event_time", None, "is missing; add it"),
    ("primary.evnt_id", "x", "no such field (did you mean `event_id`?)"),
    ("primary.event_id", [], "at least 1 item"),
    ("primary.event_time", 7, "write embedded, uuid7, a column's name, or {column: …, format: …, zone: …} (got 7)"),
    ("primary.event_time", {"format": "%Y"}, "event_time.column: is missing; add it"),
    ("primary.source.separator", ";;", "at most 1 character"),
    ("foreign.primary_id", None, "is missing; add it"),
    ("foreign.primary_time", None, "is missing; add it"),
    ("foreign.primary_time", {"lookback": "2 hours"}, "is not a duration; write a number and ms, s, m, h, d or w"),
    (
        "foreign.primary_time",
        7,
        "write embedded, uuid7, a column's name, {column: …, format: …, zone: …}, or {lookback: 2h} (got 7)",
    ),
    ("foreign.primary_time", {"whithin": "2h"}, "primary_time.whithin: no such field; remove it"),
    ("foreign.primary_time", {"lookbak": "2h"}, "primary_time.lookbak: no such field (did you mean `lookback`?)"),
    ("lake", "gs://bucket/lake", "is neither a folder of this machine nor on S3"),
    ("lake", "s3a://bucket/lake", "'s3a://bucket/lake' is no place on S3; write s3://BUCKET/PREFIX"),
    ("lake", "s3://Bucket/lake", "is no place on S3"),
    ("lake", "s3:///lake", "is no place on S3"),
    ("primary.source.path", "s3a://b/logs/*", "names no objects on S3; write s3://BUCKET/"),
    ("primary.source.path", "s3://bucket/", "names no objects on S3"),
    ("primary.source.path", "gs://bucket/*", "is neither on this machine nor on S3"),
    ("primary.source.path", "file:/logs/*", "is neither on this machine nor on S3"),
    ("lake", "file:/lake", "is neither a folder of this machine nor on S3; write a path, file:///path"),
    ("registry.retention", "3 days", "'3 days' is not a duration; write a number and ms, s, m, h, d or w, such as 10s"),
    ("registry.retention", 3, "3 is not a duration; write"),
    ("registry.bucket", "7m", "whole minutes that divide a day, such as 15m, 1h or 1d"),
    ("registry.bucket", "30s", "whole minutes that divide a day"),
    ("registry.bucket", "2d", "whole minutes that divide a day"),
    ("registry.shards", 0, "greater than or equal to 1"),
    ("registry.shards", "many", "valid integer"),
    ("retry.backoff", 0.5, "greater than or equal to 1"),
    ("retry.max_attempts", 0, "greater than or equal to 1"),
    ("retry.max_age", "-1s", "is not a duration; write"),
    ("batch.max_events", 0, "greater than or equal to 1"),
    ("batch.max_bytes", "256 MiBs", "is not a size; write a number and B, KB, MB or GB, such as 256MB"),
    ("batch.max_bytes", "5iB", "is not a size; write"),
    ("batch.max_bytes", True, "True is not a size; write"),
    ("batch.max_bytes", 0, "greater than 0"),
    ("adapter", "Merge", "should match pattern"),
    ("colour", "red", "no such field; remove it, or check its spelling"),
]


# What only the program can tell, and no JSON Schema.
BEYOND_SCHEMA = [
    ("primary.event_id", ["a", "b..c"], "path 'b..c': a key was expected at character 3, not '.'"),
    ("process", {"key": "k", "processor": "SpikesAndDips"}, "module:Class, such as clickjoin.processors:SpikesAndDips"),
    ("primary.event_time", {"column": "t", "format": "ISO"}, "`iso` is ISO 8601"),
    ("primary.event_time", {"column": "t", "format": "%Q"}, "format '%Q' cannot be read by strptime"),
    (
        "primary.event_time",
        {"column": "t", "format": "%Y", "zone": "Mars"},
        "'Mars' is no time zone; write a name such",
    ),
    ("primary.event_time", {"column": "t", "format": "%Y %z", "zone": "UTC"}, "names the zone already; remove zone"),
    ("primary.source.separator", "é", "write one ASCII character"),
    ("primary.source.columns", ["a", "a"], "must be names that differ"),
    ("primary.source", {"kind": "files", "path": "/a/*", "lookback": "1d"}, "are for logs on S3; remove them"),
    (
        "primary.source",
        {"kind": "files", "path": "/a/*", "format": "parquet"},
        "let the path end so, such as clicks/*.",
    ),
    (
        "primary.source",
        {"kind": "files", "path": "/a/*", "format": "jsonl", "separator": ";"},
        "are for CSV; remove them",
    ),
]


def test_one_line_for_one_mistake(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load(write(tmp_path, changed("foreign.primary_time", {"lookback": "2x"})))
    (line,) = str(caught.value).splitlines()[1:]
    assert line.startswith("  foreign.primary_time.lookback: '2x' is not a duration; write a number and ms, s, m, h")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (CONTRACT + "lake: /other\n", r"'lake' is there twice at line 17, column 1"),
        (CONTRACT.replace("backoff: 2,", "backoff: 2, backoff: 3,"), r"'backoff' is there twice"),
    ],
)
def test_a_key_that_is_there_twice(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=rf"(?s)is not YAML.*{words}"):
        load(write(tmp_path, text))


def test_merged_keys_may_be_replaced(tmp_path: Path) -> None:
    text = CONTRACT.replace("primary:\n", "primary: &side\n").replace("foreign:\n", "foreign:\n  <<: *side\n")
    assert load(write(tmp_path, text)) == load(write(tmp_path, CONTRACT))


@pytest.mark.parametrize(
    ("lake", "path"),
    [
        ("logs", "logs/*.jsonl"),
        ("logs/lake", "logs/*.jsonl"),
        ("logs/day/lake", "logs/*/clicks.jsonl"),
        ("a/b/lake", "a/**/*.jsonl"),
        ("../x/logs/lake", "../x/./logs/*"),
        ("s3://bucket/logs/lake", "s3://bucket/logs/**/*"),
        ("s3://bucket/logs/p", "s3://bucket/*/*/*.jsonl"),
    ],
)
def test_a_lake_inside_a_log_folder(tmp_path: Path, lake: str, path: str) -> None:
    with pytest.raises(ConfigError, match=r"lake: .* lies inside the log folder of foreign.source.path .*Keep the"):
        load(write(tmp_path, changed("foreign.source.path", path) | {"lake": lake}))


@pytest.mark.parametrize("lake", ["a[b]", "100%"])
def test_a_lake_that_cannot_be_named(tmp_path: Path, lake: str) -> None:
    with pytest.raises(ConfigError, match=r"lake: .* holds \[, \] or %, which Delta's writers misread"):
        load(write(tmp_path, RAW | {"lake": lake}))


def test_both_streams_on_the_same_files(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"both streams read /logs/impressions/\*\.jsonl; say with `where`"):
        load(write(tmp_path, changed("foreign.source.path", "/logs/x/../impressions/*.jsonl")))


@pytest.mark.parametrize(("field", "value", "remedy"), BAD + BEYOND_SCHEMA)
def test_errors_name_file_field_and_remedy(tmp_path: Path, field: str, value: Any, remedy: str) -> None:
    file = write(tmp_path, changed(field, value))
    with pytest.raises(ConfigError) as caught:
        load(file)
    text = str(caught.value)
    assert str(file) in text
    assert f"  {field}" in text
    assert remedy in text
    assert not caught.value.retryable


def test_all_errors_at_once(tmp_path: Path) -> None:
    raw = changed("registry.shards", 0) | {"colour": "red"}
    with pytest.raises(ConfigError, match=r"(?s)registry\.shards: .*colour: no such field"):
        load(write(tmp_path, raw))


def test_retention_holds_a_bucket(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="make it at least as long"):
        load(write(tmp_path, changed("registry", {"retention": "10m", "bucket": "1h"})))


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("pipeline: [", "is not YAML.*line"),
        ("", "holds no fields"),
        ("- a\n- b\n", "holds no fields"),
        ("just text", "holds no fields"),
    ],
)
def test_not_a_pipeline(tmp_path: Path, text: str, remedy: str) -> None:
    with pytest.raises(ConfigError, match=rf"(?s){tmp_path}/p\.yaml: {remedy}"):
        load(write(tmp_path, text))


def test_unreadable_files(tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes(b"pipeline: \xff\n")
    for name in ("missing.yaml", "latin.yaml", "."):
        with pytest.raises(ConfigError, match=r"cannot be read .*Give the pipeline's YAML file"):
            load(tmp_path / name)


def test_json_schema() -> None:
    schema = json.loads(json_schema())
    jsonschema.Draft202012Validator.check_schema(schema)
    valid = jsonschema.Draft202012Validator(schema).is_valid
    assert valid(RAW)
    assert valid(yaml.safe_load(STARTER))
    assert valid(changed("foreign.primary_time", {"lookback": "2h"}))
    by_key = {"match": {"on": "user.id", "within": "7d"}}
    named = {name: value for name, value in RAW["foreign"].items() if not name.startswith("primary_")}
    assert valid(RAW | {"foreign": named | by_key})
    assert not valid(RAW | {"foreign": RAW["foreign"] | by_key})
    # Only the program can tell whether a bucket divides a day, and what a size says.
    for field, value, _ in BAD:
        if field not in ("registry.bucket", "batch.max_bytes"):
            assert not valid(changed(field, value)), (field, value)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5), lambda x: st.lists(x, max_size=2)))
def test_nothing_but_configuration_errors(value: Any) -> None:
    for field in ("registry", "retry", "foreign", "batch"):
        with pytest.raises(ValidationError):
            Pipeline.model_validate({**RAW, field: value})


def test_of_a_source_of_an_unknown_kind_nothing_else_is_said(tmp_path: Path) -> None:
    """What it lacks, or has too much, would be that of another kind; what is wrong elsewhere is said."""
    raw = changed("primary.source", {"kind": "pulsar", "topic": "clicks"}) | {"retries": {}}
    with pytest.raises(ConfigError) as caught:
        load(write(tmp_path, raw))
    lines = str(caught.value).splitlines()[1:]
    assert [line.split(":")[0].strip() for line in lines] == ["primary.source.kind", "retries"]


def test_a_source_without_a_kind(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"source\.kind: is missing; write `kind: files`, and the glob"):
        load(write(tmp_path, changed("primary.source", {"path": "/logs/*.jsonl"})))


@pytest.mark.parametrize("prefix", ["one?x", "one#f", "/two", "x//y", "./x", "x/../y", "x/.."])
def test_a_prefix_that_clients_read_differently_is_refused(tmp_path: Path, prefix: str) -> None:
    """One of them wrote a table into the root of another lake."""
    with pytest.raises(ConfigError, match="Delta's clients do not agree on keys"):
        load(write(tmp_path, changed("lake", f"s3://lakes/{prefix}")))


@pytest.mark.parametrize("lake", ["s3://lakes", "s3://lakes/", "s3://lakes/a b/ü+v/", "s3://lakes/.hidden/a..b"])
def test_all_other_prefixes_are_taken(tmp_path: Path, lake: str) -> None:
    assert load(write(tmp_path, changed("lake", lake))).lake == lake.rstrip("/")


@pytest.mark.parametrize(("field", "value"), [
    ("primary.event_time", {"column": "uuid7"}), ("foreign.primary_time", {"column": ["uuid7", "at"]}),
])  # fmt: skip
def test_a_column_that_is_called_like_a_rule(tmp_path: Path, field: str, value: object) -> None:
    with pytest.raises(ConfigError, match=f"{field}: column 'uuid7' is called like the rule uuid7, and would be taken"):
        load(write(tmp_path, changed(field, value)))


@pytest.mark.parametrize(("text", "value"), [
    ("NO", "NO"), ("on", "on"), ("010", "010"), ("12:30:00", "12:30:00"), ("2019-11-24", "2019-11-24"),
    ("0x1F", "0x1F"), ("true", True), ("null", None), ("~", None), ("1_000", 1000), ("-3", -3), ("1.5", 1.5),
    ("1e3", 1000.0), ("'1'", "1"),
])  # fmt: skip
def test_scalars_are_those_of_yaml_1_2(text: str, value: object) -> None:
    """By the rules of 1.1 a country NO would be false, and a condition on it true of no record."""
    found = parse(f"[{text}]")
    assert (found, type(found[0])) == ([value], type(value))
