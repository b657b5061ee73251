"""A file that the globs of both streams match, though they differ: found before a record is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from clickjoin.config import Pipeline, load
from clickjoin.model.errors import ConfigError
from clickjoin.report.validate import validate
from clickjoin.sources.shared_files import require_apart, shared_files
from tests.unit.proposal_bench import CLICKS, QUERIES, iso, lines

WHERE = {"kind": ["view"]}


@pytest.mark.parametrize(
    ("one", "other", "found"),
    [
        ("log/*.jsonl", "log/c*.jsonl", ["log/clicks.jsonl"]),
        ("log/c*.jsonl", "log/*", ["log/clicks.jsonl"]),
        ("**/*.jsonl", "log/c*", ["log/clicks.jsonl"]),
        ("log/[cq]*.jsonl", "./log/clicks.jsonl", ["log/clicks.jsonl"]),
        ("log/q*.jsonl", "log/c*.jsonl", []),
        ("log/*", "log/old/*", []),
        ("lo*/*.jsonl", "logs/*.jsonl", ["log/clicks.jsonl"]),  # the one is a link to the other
        ("log/*.jsonl", "log/*.jsonl", []),  # which is another rule's
        ("s3://b/*", "s3://b/c*", []),
    ],
)
def test_files_that_two_globs_match(tmp_path: Path, one: str, other: str, found: list[str]) -> None:
    for name in ("log/clicks.jsonl", "log/queries.jsonl", "log/old/clicks.jsonl"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("{}\n")
    if "logs" in other:
        (tmp_path / "logs").mkdir()
        (tmp_path / "logs/clicks.jsonl").symlink_to(tmp_path / "log/clicks.jsonl")
    patterns = [pattern if pattern.startswith("s3:") else f"{tmp_path}/{pattern}" for pattern in (one, other)]
    assert shared_files(*patterns) == [str(tmp_path / name) for name in found]


def pipeline(folder: Path, foreign: dict[str, Any], primary: dict[str, Any]) -> Pipeline:
    def side(glob: str) -> dict[str, Any]:
        return {"source": {"kind": "files", "path": f"{folder}/log/{glob}"}, "event_id": "id", "event_time": "at"}

    named = {"primary_id": "of", "primary_time": {"lookback": "2h"}}
    whole = {"pipeline": "p", "engine": "arrow", "lake": f"{folder}/lake"}
    return Pipeline.model_validate(whole | {"primary": side("*") | primary, "foreign": side("c*") | named | foreign})


def write(folder: Path) -> None:
    (folder / "log").mkdir()
    lines(folder / "log/q.jsonl", [{"id": q.name, "at": iso(q.at), "kind": "view"} for q in QUERIES])
    clicks = [{"id": c.name, "at": iso(c.at), "of": c.query.name, "kind": "click"} for c in CLICKS]
    lines(folder / "log/c.jsonl", clicks)


@pytest.mark.parametrize(
    ("foreign", "primary", "named", "refused"),
    [
        ({}, {}, True, True),
        ({}, {"where": WHERE}, True, False),  # all that lies in the file may be clicks
        ({"where": {"kind": "click"}}, {}, True, False),
        ({"where": {"kind": "click"}}, {"where": WHERE}, False, False),
    ],
)
def test_streams_that_share_a_file(
    tmp_path: Path, foreign: dict[str, Any], primary: dict[str, Any], *, named: bool, refused: bool
) -> None:
    write(tmp_path)
    chosen = pipeline(tmp_path, foreign, primary)
    said = [problem for problem in validate(chosen).problems if f"{tmp_path}/log/c.jsonl is read by both" in problem]
    assert len(said) == named
    if refused:
        with pytest.raises(ConfigError, match=r"log/c\.jsonl is read by both streams"):
            require_apart(chosen)
    else:
        require_apart(chosen)


def test_nothing_is_read_of_them(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither is a file proposed for them, nor a record joined by one that was written by hand."""
    write(tmp_path)
    monkeypatch.chdir(tmp_path)
    code, _, err = run("init", "-c", "p.yaml", "--from-logs", "log/c*", "--primary", "log/*")
    assert (code, "log/c.jsonl is read by both streams" in err) == (2, True)
    assert run("init", "-c", "p.yaml", "--from-logs", "log/c*", "--primary", "log/q*")[0] == 0
    text = Path("p.yaml").read_text().replace("/log/q*", "/log/*").replace("engine: spark", "engine: arrow")
    Path("p.yaml").write_text(text)
    code, _, err = run("drain", "-c", "p.yaml")
    assert (code, "log/c.jsonl is read by both streams" in err) == (2, True)
    assert not Path(load("p.yaml").root, "joined").exists()
