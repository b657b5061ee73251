"""Pipelines whose files lie in one folder: who reads whom, what a file may say of tables, and what it may not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from clickjoin.chain.links import beside, chain_of, links_of
from clickjoin.chain.source import OutputSource, by_its_time, open_input
from clickjoin.config import Delta, OfPipeline, load
from clickjoin.model.errors import ConfigError
from clickjoin.model.places import store_of
from clickjoin.model.split import Budget
from clickjoin.sources.delta.source import DeltaSource
from clickjoin.sources.open import open_source


def write(folder: Path, name: str, source: dict[str, Any], **more: Any) -> Path:
    side = {"event_id": "event_id", "event_time": "embedded"}
    foreign = {"source": {"kind": "files", "path": f"{name}/*"}, "primary_id": "of", "primary_time": "embedded"}
    raw = {
        "pipeline": name,
        "engine": "arrow",
        "lake": "lake",
        "primary": side | {"source": source},
        "foreign": side | foreign,
    }
    folder.mkdir(exist_ok=True, parents=True)
    (folder / f"{name}.yaml").write_text(yaml.safe_dump(raw | more))
    return folder / f"{name}.yaml"


def of(name: str, **more: Any) -> dict[str, Any]:
    return {"kind": "pipeline", "name": name, **more}


def test_who_reads_whom(tmp_path: Path) -> None:
    """From any file the whole chain is found, upstreams first; what is broken or apart is left out."""
    files = {name: write(tmp_path, name, of(up)) for name, up in (("c", "b"), ("b", "a"), ("d", "b"), ("z", "none"))}
    files["a"] = write(tmp_path, "a", {"kind": "files", "path": "q/*"})
    (tmp_path / "broken.yaml").write_text("pipeline: [")
    for name in ("a", "b", "c", "d"):
        known = beside(files[name])
        assert known[0].pipeline == name
        links = links_of(known)
        assert sorted((link.upstream.pipeline, link.reader.pipeline, link.stream) for link in links) == [
            ("a", "b", "primary"), ("b", "c", "primary"), ("b", "d", "primary"),
        ]  # fmt: skip
        assert [one.pipeline for one in chain_of(known[0], links)] == ["a", "b", "c", "d"]
    assert [one.pipeline for one in chain_of(load(files["z"]), links)] == ["z"]


def test_a_file_beside_it_says_nothing_of_its_places(tmp_path: Path) -> None:
    """A copy that names the same lake, of another store and with another output, does not move what is looked at."""
    files, lake = {"kind": "files", "path": "s3://logs/q/*"}, "s3://bucket/lake"
    own = write(tmp_path, "m", files, lake=lake, s3={"endpoint": "http://own:1"})
    for name in ("a", "z"):
        other = write(tmp_path, name, files, lake=lake, s3={"endpoint": "http://other:1"})
        other.write_text(other.read_text().replace(f"pipeline: {name}", "pipeline: m"))
    known = beside(own)
    assert [one.s3.endpoint for one in known] == ["http://own:1"]
    assert {store_of(place).endpoint for place in ("s3://bucket/lake/m/joined", "s3://logs/q/1.jsonl")} == {
        "http://own:1"
    }


def test_pipelines_that_read_each_other_end_somewhere(tmp_path: Path) -> None:
    file = write(tmp_path, "a", of("b"))
    write(tmp_path, "b", of("a"))
    known = beside(file)
    assert sorted(one.pipeline for one in chain_of(known[0], links_of(known))) == ["a", "b"]


def test_another_lake_and_where_reading_starts(tmp_path: Path) -> None:
    source = load(write(tmp_path, "a", of("b", lake="../other", **{"from": "latest"}))).primary.source
    assert isinstance(source, OfPipeline)
    assert (source.path, source.start) == (f"{tmp_path}/../other/b/joined", "latest")
    assert source.json_columns == ("foreign_record", "primary_record")
    source = load(write(tmp_path, "c", of("b", lake="s3://bucket/x"))).primary.source
    assert source.path == "s3://bucket/x/b/joined"
    source = load(write(tmp_path, "d", {"kind": "delta", "path": "t/x", "from": 7})).primary.source
    assert isinstance(source, Delta)
    assert (source.path, source.start, source.json_columns) == (f"{tmp_path}/t/x", 7, ())


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (of("a"), "primary.source: is a table of this very pipeline"),
        ({"kind": "delta", "path": "lake/a/registry"}, "primary.source: is a table of this very pipeline"),
        (of("B c"), "primary.source.name: String should match pattern"),
        (of("b", **{"from": "noon"}), "primary.source.from"),
        ({"kind": "delta", "path": "x", "format": "csv"}, "primary.source.format: no such field"),
        ({"kind": "delta"}, "primary.source.path: is missing; add it"),
        (of("b", path="x"), "primary.source.path: no such field"),
    ],
)
def test_what_a_file_may_not_say(tmp_path: Path, source: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(write(tmp_path, "a", source))
    assert words in str(caught.value)


def test_whose_watermark_it_has(tmp_path: Path) -> None:
    """The upstream's, where the events are at the times of its own; who only looks needs none."""
    own = load(write(tmp_path, "a", of("b")))
    item = own.inputs[0]
    assert by_its_time(item)
    assert isinstance(open_input(item, now=lambda: 0, tasks=1), OutputSource)
    assert type(open_source(item.source)) is DeltaSource
    plan = open_input(item, now=lambda: 0, tasks=1).plan({}, Budget(1, 1))
    assert ([problem.kind for problem in plan.problems], plan.watermark) == (["not-begun"], None)
    assert "write `output: deduplicated` if that pipeline is of one stream" in plan.problems[0].detail
    nested = {"source": of("b"), "event_id": "primary.event_id", "event_time": "embedded"}
    other = load(write(tmp_path, "c", of("b"), primary=nested)).inputs[0]
    assert not by_its_time(other)
    assert type(open_input(other, now=lambda: 0, tasks=1)) is DeltaSource
