"""`output` of the pipeline's file: what is refused, what types it ends with, and what `validate` says of its paths."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from clickjoin.config import Pipeline, load
from clickjoin.engines.arrow import ArrowTables
from clickjoin.joiner.adapter import adapter_of
from clickjoin.joiner.typed_output import with_types
from clickjoin.kernel.typed_columns.by_line import derived, has, paths
from clickjoin.lake_setup import initialise
from clickjoin.model.errors import ConfigError, LakeError
from clickjoin.model.field_path import parse_path
from clickjoin.report.validate import validate
from clickjoin.yaml_file import parse

CLICK = {"id": "a:1:1600000000000000", "q": "b:1:1600000000000000", "item": 5, "tags": ["x"], "deep": {"k": 1.5}}
QUERY = {"id": "b:1:1600000000000000", "price": "3.50", "none": None}


def write(folder: Path, output: Any, **more: Any) -> Path:
    """A pipeline's file, and logs of one record each."""
    for name, record in (("queries", QUERY), ("clicks", CLICK)):
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "0.jsonl").write_text(json.dumps(record) + "\n")
    primary = {"source": {"kind": "files", "path": f"{folder}/queries/*"}, "event_id": "id", "event_time": "embedded"}
    foreign = {**primary, "source": {"kind": "files", "path": f"{folder}/clicks/*"}}
    foreign |= {"primary_id": "q", "primary_time": "embedded"}
    raw = {
        "pipeline": "p",
        "engine": "arrow",
        "lake": str(folder / "lake"),
        "primary": primary,
        "foreign": foreign,
        "output": output,
    }
    (folder / "p.yaml").write_text(yaml.safe_dump(raw | more, sort_keys=False))
    return folder / "p.yaml"


def made(folder: Path, output: Any, **more: Any) -> Pipeline:
    return load(write(folder, output, **more))


def test_the_example_of_the_page(tmp_path: Path) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs/adapters.md").read_text(encoding="utf-8")
    pipeline = made(tmp_path, parse(page.split("```yaml\n")[1].split("```")[0])["output"])
    price, campaign, user = (pipeline.output.columns[name] for name in ("price", "campaign", "first_user"))
    assert (price.source, price.type, price.default) == ("primary.price", "DECIMAL(10, 2)", None)
    assert campaign.typed("campaign").default == '"none"'
    assert user.typed("first_user").path == ("user", "ids", 0)
    assert (pipeline.output.kept, pipeline.output.strict) == ((), False)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("item", r"output.columns.c.from: 'item' is in no record; write foreign. or primary."),
        ("foreign", r"'foreign' is in no record"),
        ("foreign[0]", r"is in no record"),
        ("event.id", r"is in no record"),
        ("foreign.a..b", r"output.columns.c.from: path 'foreign.a..b': a key was expected at character 11"),
        ({"type": "INT"}, r"output.columns.c.from: is missing; add it"),
        (
            {"from": "foreign.a", "type": "MAP"},
            r"output.columns.c.type: 'MAP' is no type of a column; write one of STR",
        ),
        ({"from": "foreign.a", "type": "BINARY"}, r"'BINARY' is no type"),
        ({"from": "foreign.a", "type": "DECIMAL"}, r"'DECIMAL' is no type of a column; write one of .*DECIMAL\(p, s\)"),
        ({"from": "foreign.a", "type": "DECIMAL(p, s)"}, r"'DECIMAL\(p, s\)' is no type"),
        ({"from": "foreign.a", "type": "DECIMAL(39, 2)"}, r"has no such digits"),
        ({"from": "foreign.a", "type": "decimal(2,3)"}, r"has no such digits"),
        ({"from": "foreign.a", "as": "x"}, r"output.columns.c.as: no such field"),
    ],
)
def test_wrong_columns(tmp_path: Path, column: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        made(tmp_path, {"columns": {"c": column}})


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ({"columns": {"": "foreign.a"}}, r"column name '': write a letter"),
        ({"columns": {"a b": "foreign.a"}}, r"column name 'a b'"),
        ({"columns": {"_a": "foreign.a"}}, r"column name '_a'"),
        ({"columns": {"a.b": "foreign.a"}}, r"column name 'a.b'"),
        ({"columns": {"Item": "foreign.a", "item": "foreign.b"}}, r"columns Item and item differ in case alone"),
        ({"columns": {"Foreign_Record": "foreign.a"}}, r"column name Foreign_Record is that of the whole record"),
        ({"records": "all"}, r"output.records: "),
        ({"strict": True}, r"strict asks nothing where there are no columns"),
        ({"colums": {}}, r"output.colums: no such field"),
    ],
)
def test_wrong_output(tmp_path: Path, output: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        made(tmp_path, output)


@pytest.mark.parametrize("output", [{"columns": {"a": "foreign.a"}}, {"records": "none"}])
def test_not_with_an_adapter(tmp_path: Path, output: Any) -> None:
    with pytest.raises(ConfigError, match=r"adapter shop:Mine and output both make the output; remove adapter"):
        made(tmp_path, output, adapter="shop:Mine")
    assert made(tmp_path, {}, adapter="shop:Mine").output.is_default


@pytest.mark.parametrize("name", ["token", "Bucket", "EVENT_ID"])
def test_names_of_joined_are_taken(tmp_path: Path, name: str) -> None:
    pipeline = made(tmp_path, {"columns": {name: {"from": "foreign.a", "type": "INT"}}})
    with pytest.raises(ConfigError, match=f"column {name} is taken"):
        adapter_of(pipeline)


@pytest.mark.parametrize(
    ("kind", "default", "fits"),
    [
        ("BIGINT", 5, True), ("BIGINT", "5", True), ("BIGINT", "none", False), ("INT", 2**31, False),
        ("STRING", "none", True), ("STRING", 5, True), ("BOOLEAN", False, True), ("BOOLEAN", "no", False),
        ("DATE", "2026-03-01", True), ("DECIMAL(4, 2)", 0.5, True), ("DECIMAL(4, 2)", 0.505, False),
        ("BIGINT", "", False),
    ],
)  # fmt: skip
def test_defaults(tmp_path: Path, kind: str, default: Any, fits: bool) -> None:
    pipeline = made(tmp_path, {"columns": {"c": {"from": "foreign.a", "type": kind, "default": default}}})
    if fits:
        assert adapter_of(pipeline).columns == {"foreign_record": "STRING", "primary_record": "STRING", "c": kind}
    else:
        with pytest.raises(ConfigError, match=rf"output.columns.c.default: .* does not fit {kind.split('(')[0]}"):
            adapter_of(pipeline)


def test_a_date_that_yaml_has_read(tmp_path: Path) -> None:
    write(tmp_path, {"columns": {"c": {"from": "foreign.a", "type": "DATE", "default": "2026-03-01"}}})
    text = (tmp_path / "p.yaml").read_text()
    (tmp_path / "p.yaml").write_text(text.replace("'2026-03-01'", "2026-03-01"))
    pipeline = load(tmp_path / "p.yaml")
    assert pipeline.output.columns["c"].typed("c").default == '"2026-03-01"'
    adapter_of(pipeline)


UNTYPED = {"item": "foreign.item", "tag": "foreign.tags[0]", "k": "foreign.deep.k", "price": "primary.price"}


def test_types_of_the_logs(tmp_path: Path) -> None:
    pipeline = made(tmp_path, {"columns": UNTYPED, "records": "none"})
    initialise(pipeline)
    delta = ArrowTables(pipeline.root)
    known = delta.columns("joined")
    assert {name: known[name] for name in UNTYPED} == {
        "item": "long", "tag": "string", "k": "double", "price": "string",
    }  # fmt: skip
    for log in tmp_path.glob("*/0.jsonl"):
        log.unlink()
    assert adapter_of(with_types(pipeline, delta)).columns == {
        "item": "BIGINT", "tag": "STRING", "k": "DOUBLE", "price": "STRING",
    }  # fmt: skip
    initialise(pipeline)


def test_a_type_that_nothing_says(tmp_path: Path) -> None:
    pipeline = made(tmp_path, {"columns": UNTYPED | {"none": "primary.none", "x": "foreign.y"}})
    with pytest.raises(ConfigError) as caught:
        initialise(pipeline)
    assert str(caught.value).startswith("output.columns.none: the type of primary.none is not known: none of 1 records")
    assert "they have id, price, none; output.columns.x: " in str(caught.value)
    assert "they have id, q, item, tags[0], deep.k. Write its type" in str(caught.value)
    assert not Path(pipeline.root).exists()  # nothing was made


def test_a_type_that_nothing_says_without_logs(tmp_path: Path) -> None:
    pipeline = made(tmp_path, {"columns": UNTYPED})
    (tmp_path / "clicks/0.jsonl").unlink()
    with pytest.raises(ConfigError, match=r"there are no good records of stream foreign to derive it from"):
        initialise(pipeline)


def test_types_stay(tmp_path: Path) -> None:
    initialise(made(tmp_path, {"columns": {"c": {"from": "foreign.item", "type": "DECIMAL(4, 2)"}}}))
    with pytest.raises(LakeError, match=r"column c is decimal\(4,2\), and output.columns makes it BIGINT"):
        initialise(made(tmp_path, {"columns": {"c": {"from": "foreign.item", "type": "BIGINT"}}}))
    with pytest.raises(LakeError, match=r"column c is there, and output.columns makes C"):
        initialise(made(tmp_path, {"columns": {"C": {"from": "foreign.item", "type": "BIGINT"}}}))
    pipeline = made(tmp_path, {"columns": {"c": "foreign.item", "d": {"from": "foreign.item", "type": "BIGINT"}}})
    initialise(pipeline)
    assert adapter_of(with_types(pipeline, ArrowTables(pipeline.root))).columns["c"] == "DECIMAL(4,2)"


def test_validate_names_paths_that_no_record_has(tmp_path: Path) -> None:
    columns = {
        "fine": {"from": "foreign.deep.k", "type": "DOUBLE"},
        "null": {"from": "primary.none", "type": "INT"},
        "bad": {"from": "foreign.deep.l", "type": "INT"},
    }
    assert validate(made(tmp_path, {"columns": columns})).problems == [
        "output.columns.bad: none of 1 records has foreign.deep.l; they have id, q, item, tags[0], deep.k"
    ]
    (found,) = validate(made(tmp_path, {"columns": {"x": "foreign.x"}})).problems
    assert found.startswith("output.columns.x: the type of foreign.x is not known: none of 1 records has a value there")
    assert "they have id, q, item, tags[0], deep.k. Write its type, such as {from: …, type: STRING}" in found
    assert validate(made(tmp_path, {"columns": UNTYPED})).problems == []
    assert not (tmp_path / "lake").exists()


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        (["1", "null", "-2"], "BIGINT"), (["1", "2.5"], "DOUBLE"), (["9223372036854775808"], "DOUBLE"),
        (["true", "false"], "BOOLEAN"), (['"1"'], "STRING"), (["1", '"1"'], "STRING"), (["true", "1"], "STRING"),
        (["{}"], "STRING"), (["null"], None), ([], None),
    ],
)  # fmt: skip
def test_derived(values: list[str], wanted: str | None) -> None:
    assert derived([f'{{"v": {value}}}' for value in values], ("v",)) == wanted


def test_paths() -> None:
    record = '{"a.b": [{"c": 1}, {"d": 2}], "e": {}, "f": [], "g": [null], "h": {"i": "x"}}'
    assert paths([record]) == ["`a.b`[0].c", "e", "f", "g[0]", "h.i"]
    for path in ("`a.b`[1].d", "e", "h", "h.i"):
        assert has([record], parse_path(path))
    for path in ("a", "`a.b`[2]", "h.j", "h[0]", "g[0]"):
        assert not has([record], parse_path(path))
