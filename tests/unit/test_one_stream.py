"""A pipeline's file with one stream: what it means, and what does not go with it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml

from clickjoin.config import Pipeline, load
from clickjoin.erasure.wanted import parse
from clickjoin.joiner.adapter import adapter_of
from clickjoin.joiner.own_columns import of_records
from clickjoin.joiner.typed_output import with_types
from clickjoin.kernel.forgotten import EMPTIED, Forgotten, without_records
from clickjoin.kernel.parse.fields import understand
from clickjoin.lake.delta_reader import DeltaReader
from clickjoin.lake_setup import initialise
from clickjoin.model.errors import ConfigError
from clickjoin.model.places import folder_of, output_of
from clickjoin.registry.shards import fixed
from clickjoin.schemas import BY_NAME, DEDUPLICATED

STREAM = {
    "source": {"kind": "files", "path": "logs/*.jsonl"},
    "event_id": "messageId",
    "event_time": "receivedAt",
}
PRIMARY = STREAM | {"source": {"kind": "files", "path": "queries/*.jsonl"}}


def write(folder: Path, **fields: Any) -> Path:
    file = folder / "one.yaml"
    whole = {"pipeline": "one", "engine": "arrow", "lake": "lake", "stream": STREAM, **fields}
    file.write_text(yaml.safe_dump({name: value for name, value in whole.items() if value is not None}))
    return file


def log(folder: Path, *records: dict[str, Any]) -> None:
    (folder / "logs").mkdir(exist_ok=True)
    (folder / "logs/a.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in records))


def event(number: int, **more: Any) -> dict[str, Any]:
    return {"messageId": f"m{number}", "receivedAt": "2026-03-01T12:00:00Z", **more}


def test_one_stream_lies_where_a_foreign_one_does(tmp_path: Path) -> None:
    pipeline = load(write(tmp_path))
    (item,) = pipeline.inputs
    assert (item.name, item.role, item.section) == ("foreign", "foreign", "stream")
    spec = item.spec(0)
    assert (spec.event_id, spec.event_time, spec.primary_id) == (("messageId",), "receivedAt", ())
    assert fixed(pipeline)["event_id"] == "messageId"
    assert pipeline.around is None
    assert item.source.path == f"{tmp_path}/logs/*.jsonl"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"stream": None}, "primary: is missing; add it\n  foreign: is missing; add it"),
        ({"stream": None, "primary": PRIMARY}, "  foreign: is missing; add it"),
        ({"primary": PRIMARY}, "primary: one stream has no partner; remove it, or remove `stream`"),
        ({"foreign": PRIMARY | {"primary_id": "q", "primary_time": "t"}}, "foreign: one stream has no partner"),
        ({"retry": {"max_attempts": 3}}, "retry: an event of one stream waits for nothing, so none is tried again"),
        ({"retention": {"pending": "3d"}}, "retention.pending: one stream has nothing in table `pending`"),
        ({"airflow": {"dags": ["join", "retry"]}}, "airflow.dags: retry is for streams that wait for a partner"),
        ({"output": {"records": "primary"}}, "output.records: primary is no record of one stream; write record or no"),
        ({"output": {"columns": {"a": "foreign.a"}}}, "a pipeline of one stream has no foreign. or primary. record"),
        (
            {"stream": {**STREAM, "event_time": "landed"}, "registry": {"identity": "id"}},
            "stream.event_time: when a record was read differs between readers, and so cannot age its id; name the",
        ),
        ({"registry": {"identity": "id", "repeats": "1m"}}, "registry: repeats is shorter than one bucket"),
        ({"registry": {"repeats": "3d"}}, "repeats is for identity: id; where the time is part of the identity"),
        ({"stream": {**STREAM, "primary_id": "a"}}, "stream.primary_id: no such field"),
        ({"stream": {"source": STREAM["source"]}}, "stream.event_id: is missing; add it"),
    ],
)
def test_what_does_not_go_together(tmp_path: Path, fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as error:
        load(write(tmp_path, **fields))
    assert said in str(error.value)


def test_what_only_goes_with_one_stream(tmp_path: Path) -> None:
    two = {"stream": None, "primary": PRIMARY, "foreign": STREAM | {"primary_id": "q", "primary_time": "t"}}
    for more, said in (
        ({"output": {"columns": {"a": "stream.a"}}}, r"output.columns: stream\. is for a pipeline of one stream"),
        ({"output": {"records": "record"}}, r"output.records: record is for a pipeline of one stream"),
        (
            {"foreign": two["foreign"] | {"event_time": "landed"}, "registry": {"identity": "id"}},
            r"foreign.event_time: when a record was read differs between readers",
        ),
    ):
        with pytest.raises(ConfigError, match=said):
            load(write(tmp_path, **two | more))


def test_an_id_alone(tmp_path: Path) -> None:
    pipeline = load(write(tmp_path, registry={"identity": "id", "retention": "5d"}))
    assert pipeline.by_id
    assert pipeline.repeats == 5 * 86400  # two records of one id as far apart as claims are kept
    assert load(write(tmp_path, registry={"identity": "id", "repeats": "1d"})).repeats == 86400
    assert load(write(tmp_path)).repeats == 0
    assert fixed(pipeline)["event_id"] == "messageId alone, repeats within 432000 s"
    spec = pipeline.spec("foreign", 1_772_366_400_000_000)
    when = pa.array(["2026-03-01T11:00:00Z", "2026-03-01T11:00:00Z", "2026-03-01T11:00:01Z"])
    parsed = understand({"messageId": pa.array(["a", "", "b"]), "receivedAt": when}, 3, spec)
    assert (parsed.event_id.to_pylist(), np.diff(parsed.event_time).tolist()) == (["a", "b"], [1_000_000])


def test_the_schema_for_editors_wants_one_or_two(tmp_path: Path) -> None:
    from jsonschema import Draft202012Validator

    check = Draft202012Validator(Pipeline.model_json_schema())
    one = yaml.safe_load(write(tmp_path).read_text())
    two = {**one, "primary": PRIMARY, "foreign": {**STREAM, "primary_id": "q", "primary_time": "t"}}
    assert check.is_valid(one)
    assert not check.is_valid(two)
    del two["stream"]
    assert check.is_valid(two)
    del two["primary"]
    assert not check.is_valid(two)


def test_its_output_has_a_name_of_its_own(tmp_path: Path) -> None:
    log(tmp_path, event(1, n=5))
    pipeline = load(write(tmp_path))
    assert folder_of(pipeline.root, "joined") == f"{tmp_path}/lake/one/deduplicated"
    assert output_of(f"{pipeline.root}.put-aside-20260301T120000.000000Z") == "deduplicated"
    assert output_of(f"{pipeline.root}x") == "joined"
    assert "joined" in initialise(pipeline)
    assert sorted(path.name for path in (tmp_path / "lake/one").iterdir() if path.is_dir()) == sorted(
        {*BY_NAME, "deduplicated"} - {"joined"}
    )
    delta = DeltaReader(pipeline.root)
    assert delta.table("joined").names == DEDUPLICATED.names
    assert list(delta.columns("joined")) == [*DEDUPLICATED.names, "record", "messageId", "receivedAt", "n"]
    # Another start takes the columns from there: what the log holds by now does not matter.
    log(tmp_path, event(1, n="five", more=True))
    assert dict(adapter_of(with_types(pipeline, delta)).columns) == {
        **dict.fromkeys(("record", "messageId", "receivedAt"), "STRING"),
        "n": "BIGINT",
    }
    assert initialise(pipeline) == []


def test_the_columns_of_records(tmp_path: Path) -> None:
    texts = [
        '{"messageId": "a", "n": null, "token": "t", "Bucket": 1, "9": 1, "": 2, "x.y": 3, "nested": {"a": 1}}',
        '{"messageId": "b", "n": 1.5, "N": 3, "never": null, "ok": true}',
    ]
    found = of_records(texts, load(write(tmp_path)))
    assert {name: (column.source, column.type) for name, column in found.items()} == {
        "messageId": ("stream.messageId", "STRING"),
        "n": ("stream.n", "DOUBLE"),
        "record_token": ("stream.token", "STRING"),
        "record_Bucket": ("stream.Bucket", "BIGINT"),
        "record_9": ("stream.9", "BIGINT"),
        "nested": ("stream.nested", "STRING"),
        "record_N": ("stream.N", "BIGINT"),
        "ok": ("stream.ok", "BOOLEAN"),
    }
    named = load(write(tmp_path, stream=STREAM | {"event_id": "event_id"}))
    assert list(of_records(['{"event_id": "a", "b": 1}'], named)) == ["b"]
    with pytest.raises(ConfigError, match="holds no good record yet"):
        of_records([], named)
    with pytest.raises(ConfigError, match="its records have 201 fields, and the output takes 200"):
        of_records([json.dumps({f"f{number}": 1 for number in range(201)})], named)


def test_what_was_forgotten_of_an_id_is_so_at_any_time() -> None:
    keys = pa.table({"event_id": ["a"], "event_time": pa.array([5], pa.timestamp("us", "UTC"))})
    good = pa.table(
        {
            "event_id": ["a", "b"],
            "event_time": pa.array([9, 9], pa.timestamp("us", "UTC")),
            "payload": ["mine", "yours"],
            "primary_id": pa.nulls(2, pa.string()),
        }
    )
    for by_id, held in ((True, [EMPTIED, "yours"]), (False, ["mine", "yours"])):
        found = without_records(good, Forgotten(keys, by_id=by_id), foreign=True)
        assert found["payload"].to_pylist() == held


def test_a_person_s_records_are_named_as_those_of_the_stream() -> None:
    found = parse(["stream.user.id=U17", "deduplicated.user=U17"], None).conditions
    assert [(one.stream, one.path) for one in found] == [("foreign", ("user", "id")), ("joined", ("user",))]
