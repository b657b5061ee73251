"""Reading the pipelines' files cheaply must agree with reading them in full."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from clickjoin.config import load
from clickjoin.model.dags import DAGS, OF_EVERY_JOIN
from clickjoin.model.errors import ConfigError
from clickjoin_airflow import pipelines


@pytest.mark.parametrize("lake", ["./lake", "/var/lake", "file:///var/lake/", "lake"])
@pytest.mark.parametrize("lease", ["5s", "2m", "500ms", "1.5h"])
def test_as_the_library_reads_it(tmp_path: Path, write_pipeline: Callable[..., Path], lake: str, lease: str) -> None:
    path = write_pipeline(tmp_path, "clicks", lake=lake, lease=lease)
    cheap, full = pipelines.read(path), load(path)
    assert (cheap.name, cheap.tables, cheap.lease) == (full.pipeline, full.root, full.batch.lease)


def test_where_s3_is(tmp_path: Path, write_pipeline: Callable[..., Path]) -> None:
    path = write_pipeline(tmp_path, "clicks", lake="s3://bucket/lake")
    assert pipelines.read(path).store is None
    path.write_text(f"{path.read_text()}\ns3: {{endpoint: 'http://127.0.0.1:9000/', path_style: true}}\n")
    assert pipelines.read(path).store == load(path).s3.store == ("http://127.0.0.1:9000", None, True)


@pytest.mark.parametrize("style", ["true", "'true'", "on", "No", "'F'", "1", "0", "null"])
def test_path_style_as_the_library_takes_it(tmp_path: Path, write_pipeline: Callable[..., Path], style: str) -> None:
    path = write_pipeline(tmp_path, "clicks", lake="s3://bucket/lake")
    path.write_text(f"{path.read_text()}\ns3: {{path_style: {style}}}\n")
    store = pipelines.read(path).store
    assert store is not None
    assert store.path_style is load(path).s3.path_style


@pytest.mark.parametrize("name", ["on", "no", "y"])
def test_names_are_those_of_yaml_1_2(tmp_path: Path, write_pipeline: Callable[..., Path], name: str) -> None:
    path = write_pipeline(tmp_path, name, lake="0777")
    path.write_text(f"{path.read_text()}\nairflow: {{group: {name}}}\n")
    cheap, full = pipelines.read(path), load(path)
    assert (cheap.name, cheap.tables, cheap.group) == (full.pipeline, full.root, full.airflow.group)
    assert cheap.tables == f"{tmp_path}/0777/{name}"


def test_a_field_that_is_there_twice(tmp_path: Path, write_pipeline: Callable[..., Path]) -> None:
    path = write_pipeline(tmp_path, "clicks")
    path.write_text(f"{path.read_text()}\nlake: /elsewhere\n")
    (broken,) = pipelines.find(tmp_path).broken
    assert "'lake' is there twice" in broken.problem
    with pytest.raises(ConfigError, match="'lake' is there twice"):
        load(path)


def test_asset_of_a_bucket(tmp_path: Path, write_pipeline: Callable[..., Path]) -> None:
    asset = pipelines.read(write_pipeline(tmp_path, "clicks", lake="s3a://bucket/prefix")).joined
    assert (asset.name, asset.uri) == ("clicks/joined", "s3a://bucket/prefix/clicks/joined")


def test_folder_by_the_environment(
    tmp_path: Path, write_pipeline: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_pipeline(tmp_path / "beside", "one")
    write_pipeline(tmp_path / "elsewhere", "two")
    monkeypatch.delenv("CLICKJOIN_PIPELINES", raising=False)
    assert [file.name for file in pipelines.find(tmp_path / "beside").good] == ["one"]
    monkeypatch.setenv("CLICKJOIN_PIPELINES", str(tmp_path / "elsewhere"))
    assert [file.name for file in pipelines.find(tmp_path / "beside").good] == ["two"]


def test_no_folder_is_no_pipeline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CLICKJOIN_PIPELINES", raising=False)
    assert pipelines.find(tmp_path / "none") == pipelines.Found((), ())
    pipelines.require_readable(tmp_path / "none")


def test_a_broken_file_takes_no_good_ones_name(
    tmp_path: Path, write_pipeline: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CLICKJOIN_PIPELINES", raising=False)
    write_pipeline(tmp_path, "clicks", file="other.yaml")
    (tmp_path / "clicks.yaml").write_text("pipeline: [")
    found = pipelines.find(tmp_path)
    assert [file.name for file in found.good] == ["clicks"]
    assert [file.name for file in found.broken] == ["clicks.yaml"]


def test_a_name_that_several_files_have_is_nobodys(
    tmp_path: Path, write_pipeline: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CLICKJOIN_PIPELINES", raising=False)
    for file, lake in (("a.yaml", "./one"), ("clicks.yaml", "./two"), ("z.yml", "./three")):
        write_pipeline(tmp_path, "clicks", lake=lake, file=file)
    write_pipeline(tmp_path, "ads")
    found = pipelines.find(tmp_path)
    assert [file.name for file in found.good] == ["ads"]
    assert [file.name for file in found.broken] == ["a", "clicks", "z"]
    assert "pipeline clicks is in clicks.yaml, z.yml too, so none of them runs" in found.broken[0].problem
    assert "pipeline clicks is in a.yaml, z.yml too" in found.broken[1].problem
    with pytest.raises(pipelines.PipelineFileError, match=r"(?s)a\.yaml.*clicks\.yaml.*z\.yml"):
        pipelines.require_readable(tmp_path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "holds no fields"),
        ("- a", "holds no fields"),
        ("pipeline: Clicks\nlake: x", "pipeline: 'Clicks' is no name"),
        ("pipeline: clicks", "lake: None is no folder"),
        ("a: b: c", "mapping values are not allowed"),
        (b"\xff\xfe\x00", "codec"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, text: str | bytes, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CLICKJOIN_PIPELINES", raising=False)
    path = tmp_path / "bad file.yaml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    found = pipelines.find(tmp_path)
    assert found.good == ()
    assert found.broken[0].name == "bad_file"
    assert words in found.broken[0].problem
    assert str(path) in found.broken[0].problem
    with pytest.raises(pipelines.PipelineFileError, match="bad file"):
        pipelines.require_readable(tmp_path)


def test_a_pipeline_may_want_some_dags_only(tmp_path: Path, write_pipeline: Callable[..., Path]) -> None:
    file = write_pipeline(tmp_path, "clicks")
    assert [name for name in DAGS if list(pipelines.find(tmp_path).with_dag(name))] == list(OF_EVERY_JOIN)
    file.write_text(file.read_text() + "airflow: {dags: [join, gc]}\n")
    assert [name for name in DAGS if list(pipelines.find(tmp_path).with_dag(name))] == ["join", "gc"]
    assert load(file).airflow.dags == ("join", "gc")
    file.write_text(file.read_text().replace("gc]", "upkeep]"))
    (broken,) = pipelines.find(tmp_path).broken
    assert "airflow.dags: 'upkeep' is no DAG; choose of join, retry," in broken.problem
    with pytest.raises(ConfigError, match=r"airflow\.dags\.1"):
        load(file)


def test_every_dag_file_is_one_that_can_be_chosen() -> None:
    folder = Path(__file__).resolve().parents[2] / "dags"
    assert {path.stem for path in folder.glob("*.py")} - {"broken"} == set(DAGS)
    assert all(f', "{path.stem}"))' in path.read_text() for path in folder.glob("*.py") if path.stem != "broken")
