"""Checks before a pipeline runs: its adapter's columns, and whether its logs are there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import pytest

from clickjoin.config import Pipeline
from clickjoin.joiner.adapter import Adapter
from clickjoin.report.validate import findings


class Taken(Adapter):
    columns: ClassVar[Mapping[str, str]] = {"Token": "STRING", "bucket": "STRING", "fine": "STRING"}


class Odd(Adapter):
    columns: ClassVar[Mapping[str, str]] = {"parts": "MAP<STRING, INT>"}


def pipeline(folder: Path, **more: str) -> Pipeline:
    primary = {"source": {"kind": "files", "path": f"{folder}/queries/*"}, "event_id": "id", "event_time": "embedded"}
    foreign = {**primary, "source": {"kind": "files", "path": f"{folder}/clicks/*"}}
    foreign |= {"primary_id": "q", "primary_time": "embedded"}
    raw = {"pipeline": "p", "lake": str(folder), "primary": primary, "foreign": foreign, **more}
    return Pipeline.model_validate(raw)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    for name in ("queries", "clicks"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "0.jsonl").write_text('{"id": "a:1:1"}\n')
    return tmp_path


def test_all_is_well(logs: Path) -> None:
    assert findings(pipeline(logs)) == []
    assert sorted(path.name for path in logs.iterdir()) == ["clicks", "queries"]  # and nothing was made


def test_no_folder(logs: Path) -> None:
    (logs / "clicks" / "0.jsonl").unlink()
    (logs / "clicks").rmdir()
    found = findings(pipeline(logs))
    assert len(found) == 1
    assert found[0].startswith(f"foreign.source {logs}/clicks")
    assert "missing" in found[0]


def test_no_file(logs: Path) -> None:
    (logs / "queries" / "0.jsonl").unlink()
    (found,) = findings(pipeline(logs))
    assert found.startswith("primary.source")
    assert f"no file matches {logs}/queries/*" in found


def test_no_whole_record(logs: Path) -> None:
    (logs / "queries" / "0.jsonl").write_text('{"id"')
    (found,) = findings(pipeline(logs))
    assert found == (
        f"primary.source.path {logs}/queries/*: no file with a whole record matches; check folder and pattern"
    )


@pytest.mark.parametrize(
    ("adapter", "message"),
    [
        (f"{__name__}:Taken", r"columns Token, bucket are taken. Give them other names"),
        (f"{__name__}:Odd", r"type MAP<STRING, INT> is not supported"),
        ("no_such_module:Mine", r"cannot be imported"),
    ],
)
def test_adapters(logs: Path, adapter: str, message: str) -> None:
    (found,) = findings(pipeline(logs, adapter=adapter))
    assert message in found


def test_everything_at_once(tmp_path: Path) -> None:
    found = findings(pipeline(tmp_path / "nowhere", adapter="no_such_module:Mine"))
    assert [text.split()[0] for text in found] == ["adapter", "primary.source", "foreign.source"]
