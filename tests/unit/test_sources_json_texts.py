"""Fields whose text is JSON: what they hold is part of the record; places and bytes stay those of the log."""

from __future__ import annotations

import gzip
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickjoin.config import Files
from clickjoin.config.kafka import Kafka
from clickjoin.kernel.parse.json_texts import NoJson, unfolded
from clickjoin.kernel.read_lines import read_numbered
from clickjoin.model.where import Condition, Where
from tests.unit.sources_bench import BASE, Feed, numbers
from tests.unit.sources_bench import spec as spec_of


def at(number: int) -> str:
    """An id that holds its time."""
    return f"h:1:{BASE + number}"


def wrapped(text: Any, **beside: Any) -> bytes:
    """A notification as SNS writes it."""
    return json.dumps({"Type": "Notification", "Message": text, **beside}).encode() + b"\n"


def one(number: int, **more: Any) -> str:
    """The text of one good record."""
    return json.dumps({"id": at(number), **more})


def read(folder: Path, data: bytes, name: str = "a.jsonl", **fields: Any) -> list[dict[str, Any]]:
    """All records of a file with these bytes."""
    (folder / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    feed = Feed(folder, name)
    known = {"texts": (("Message",),), "event_id": "Message.id"}
    return feed.read(feed.plan().splits, **known | fields)


def ids(rows: list[dict[str, Any]]) -> list[int]:
    """The numbers of the good ones."""
    return numbers([row for row in rows if not row["reason"]])


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_what_a_text_holds_is_part_of_the_record(tmp_path: Path, name: str) -> None:
    lines = [
        wrapped(one(0, text='é "x" \\ \n', n=1.50)), wrapped("\n {\n" + one(1)[1:] + "\r\n"),
        json.dumps({"Message": json.loads(one(2))}).encode() + b"\n",
    ]  # fmt: skip
    rows = read(tmp_path, b"\xef\xbb\xbf" + b"".join(lines), name)
    assert ids(rows) == [0, 1, 2]
    assert json.loads(rows[0]["payload"])["Message"] == {"id": at(0), "text": 'é "x" \\ \n', "n": 1.5}
    assert '"n": 1.5' in rows[0]["payload"]  # all stands as it was written
    edges = np.cumsum([0, len(lines[0]) + 3, *map(len, lines[1:])]).tolist()
    assert [(row["offset"], row["offset"] + row["length"]) for row in rows] == list(pairwise(edges))


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("started", "Expecting value at character 0"),
        ("", "Expecting value"),
        ('{"id": "x"', "delimiter"),
        ("7", "one value"),
        ('"{}"', "one value"),
        ("[" * 99_999, "deeply"),
        ('{"id": "\ud800"}', "surrogate"),
        ('{"id": "a\nb"}', "control character"),
        ('{"id": "a"} x', "Extra data"),
    ],
)
def test_text_that_is_no_json_is_a_bad_record(tmp_path: Path, text: str, detail: str) -> None:
    rows = read(tmp_path, wrapped(one(0)) + wrapped(text) + wrapped(one(1)))
    assert ids(rows) == [0, 1]
    (bad,) = [row for row in rows if row["reason"]]
    assert (bad["reason"], bad["raw"]) == ("broken-json", wrapped(text))
    assert bad["detail"].startswith("`Message` holds text that is no JSON object: ")
    assert detail in bad["detail"]


def test_other_records_stay_as_they_are(tmp_path: Path) -> None:
    data = b'{"id": 1}\n{"Message": null}\n{"Message": 7}\n{"Message"\n{"Message": "{}", "Message": "{}"}\n' + b"\xff\n"
    rows = read(tmp_path, data)
    reasons = ["missing-id", "missing-id", "missing-id", "broken-json", "broken-json", "invalid-utf8"]
    assert sorted(row["reason"] for row in rows) == sorted(reasons)
    assert b"".join(row["raw"] for row in rows) == data


def test_a_bad_record_keeps_its_bytes(tmp_path: Path) -> None:
    data = wrapped('{"id": null}')
    (row,) = read(tmp_path, data)
    assert (row["reason"], row["raw"], row["offset"], row["length"]) == ("missing-id", data, 0, len(data))
    assert "`Message.id` is missing" in row["detail"]


def where(mine: Condition, theirs: Condition | None = None, *, quiet: bool = False) -> Where:
    """Conditions of a stream, and of the other one."""
    return Where((mine,), None if theirs is None else (theirs,), quiet)


def test_conditions_beside_the_text_and_in_it(tmp_path: Path) -> None:
    data = wrapped("hello", Type="SubscriptionConfirmation") + wrapped(one(0, kind="click")) + wrapped("bad")
    data += wrapped(one(1, kind="view"))
    beside, inside = Condition("Type", ("Notification",)), Condition("Message.kind", ("click",))
    rows = read(tmp_path, data, where=where(beside))
    assert [(row["reason"], row["detail"]) for row in rows if row["length"] == 0] == [("passed-over", "1")]
    assert [row["raw"] for row in rows if row["reason"] == "broken-json"] == [wrapped("bad")]
    assert ids([row for row in rows if row["length"]]) == [0, 1]
    data += wrapped('{"id": "cut')
    rows = read(tmp_path, data, "b.jsonl", where=where(inside))
    assert [(row["reason"], row["detail"]) for row in rows if row["length"] == 0] == [("passed-over", "3")]
    assert [row["raw"] for row in rows if row["reason"] == "broken-json"] == [wrapped('{"id": "cut')]  # nobody can tell
    other = read(tmp_path, data, "c.jsonl", where=where(inside, Condition("Message.kind", ("view",)), quiet=True))
    assert [(row["reason"], row["event_id"]) for row in other] == [(None, at(0))]


def test_an_array_in_a_text(tmp_path: Path) -> None:
    text = json.dumps({"Records": [json.loads(one(0, t="é")), {"id": None}, json.loads(one(1))]})
    data = wrapped(text) + wrapped('{"event": "s3:TestEvent"}') + wrapped("no") + wrapped(f"[{one(2)}]")
    fields: dict[str, Any] = {"event_id": "id", "records": ("Message", "Records")}
    rows = read(tmp_path, data, **fields)
    assert ids(rows) == [0, 1]
    bad = [(row["reason"], row["raw"]) for row in rows if row["reason"]]
    assert bad == [("missing-id", b'{"id": null}\n'), ("missing-id", wrapped('{"event": "s3:TestEvent"}')),
                   ("broken-json", wrapped("no")), ("missing-id", wrapped(f"[{one(2)}]"))]  # fmt: skip
    edges = [(row["offset"], row["offset"] + row["length"]) for row in rows]
    assert all(high == low for (_, high), (low, _) in pairwise(edges))
    assert edges[-1][1] == len(data)
    assert ids(read(tmp_path, wrapped(f"[{one(2)},{one(3)}]"), "b.jsonl", event_id="id", records=("Message",))) == [
        2,
        3,
    ]


def test_texts_of_an_arrays_elements_and_texts_in_texts(tmp_path: Path) -> None:
    body = json.dumps({"Type": "Notification", "Message": one(0)})
    plain = {"messageId": "m", "body": "no"}
    line = json.dumps({"Records": [{"body": body}, plain, {"body": json.dumps({"Message": one(1)})}]}).encode() + b"\n"
    texts = (("body", "Message"), ("body",))
    rows = read(tmp_path, line, texts=texts, records=("Records",), event_id="body.Message.id")
    assert ids(rows) == [0, 1]
    assert [row["raw"] for row in rows if row["reason"]] == [json.dumps(plain).encode() + b"\n"]
    assert json.loads(rows[0]["payload"])["body"]["Message"] == {"id": at(0)}


def test_an_elements_field_that_is_called_like_one_around_it(tmp_path: Path) -> None:
    text = json.dumps({"Records": [{"id": at(0), "Message": "hello"}]})
    rows = read(tmp_path, wrapped(text), records=("Message", "Records"), event_id="id")
    assert ids(rows) == [0]
    assert json.loads(rows[0]["payload"])["Message"] == "hello"


def test_a_line_that_is_too_long_is_so_however_it_is_cut(tmp_path: Path) -> None:
    text = json.dumps({"Records": [json.loads(one(n)) for n in range(20)]})
    for number, records in enumerate([("Message", "Records"), ()]):
        rows = read(tmp_path, wrapped(text), f"{number}.jsonl", records=records, event_id="id", max_record=300)
        assert [row["reason"] for row in rows] == ["too-long"]


def test_messages_of_a_topic(tmp_path: Path) -> None:
    lines = [wrapped(one(0)), wrapped("no"), wrapped(one(1))]
    spec = spec_of(texts=(("Message",),), event_id="Message.id")
    rows = [row for batch in read_numbered("t", "0", spec, np.array([7, 8, 9]), lines) for row in batch.to_pylist()]
    assert sorted((row["offset"], row["event_id"], row["raw"]) for row in rows) == [
        (7, at(0), None), (8, None, lines[1]), (9, at(1), None)
    ]  # fmt: skip


scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=6) | st.floats(allow_nan=False)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
)
objects = st.dictionaries(st.text(max_size=3), values, max_size=3)


@given(objects, objects, st.booleans(), st.booleans(), st.sampled_from([None, 1]))
def test_a_line_is_what_it_was_with_the_text_as_its_object(
    held: Any, beside: Any, ascii_: bool, outer: bool, indent: int | None
) -> None:
    text = json.dumps(held, ensure_ascii=ascii_, indent=indent)
    record = {**beside, "a": {**beside, "Té": text}, "z": text}
    line = json.dumps(record, ensure_ascii=outer)
    found = unfolded(line, [("a", "Té")])
    assert json.loads(found) == {**record, "a": {**record["a"], "Té": held}}
    assert "\n" not in found
    assert len(found.encode("utf-8", "surrogatepass")) <= len(line.encode("utf-8", "surrogatepass"))
    assert unfolded(found, [("a", "Té")]) == found


def test_what_is_wrong_is_said() -> None:
    with pytest.raises(NoJson):
        unfolded('{"a": "b"}', [("a",)])


def test_the_files_own_word(tmp_path: Path) -> None:
    files = Files.model_validate({"kind": "files", "path": "x/*", "json": "Message"})
    assert files.json_texts == ("Message",)
    topic = {"kind": "kafka", "servers": "a:1", "topic": "t", "json": ["after", "after.who"]}
    assert Kafka.model_validate(topic).json_texts == ("after", "after.who")
    in_array, open_end, csv = {"json": "a[0].b"}, {"json": "a.", "format": "jsonl"}, {"json": "a", "format": "csv"}
    for wrong, says in [
        (in_array, "element of an"),
        (open_end, "ends with a dot"),
        (csv, "all fields of CSV are text"),
    ]:
        with pytest.raises(ValueError, match=says):
            Files.model_validate({"kind": "files", "path": "x/*", **wrong})
    with pytest.raises(ValueError, match="all fields of CSV are text"):
        Kafka.model_validate({**topic, "format": "csv", "columns": ["a"]})
