"""Commands that begin a pipeline: init, validate, generate; and a lake that cannot be made or written to."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from clickjoin.config import load
from clickjoin.jobs.all_jobs import JOBS
from clickjoin.model.errors import LakeError
from clickjoin.schemas import ALL

ROOT = Path(__file__).parents[2]


def test_init_thrice(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, here = tmp_path / "new" / "p.yaml", tmp_path / 'a "b" *c'
    here.mkdir()
    monkeypatch.chdir(here)
    code, out, _ = run("init", "--config", file)
    assert code == 0
    first, *then = out.splitlines()
    assert first == f"{file} written: edit it (your logs' folders, your columns)"
    assert [line.partition("  #")[0].strip() for line in then] == [
        "next:", *(f"clickjoin {command} --config {file}" for command in ("validate", "drain", "run"))
    ]  # fmt: skip
    following = "\n".join([*then, ""])
    written, lake = file.read_text(), here / "lake" / "clicks"
    copied = load(shutil.copy(file, tmp_path / "copy.yaml"))
    assert (copied.root, copied) == (str(lake), load(file))
    assert copied.foreign.source.path == f'{tmp_path}/a "b" [*]c/logs/clicks/*.jsonl'
    assert run("init", "-c", file) == (0, f"{lake}: created {len(ALL)} tables\n{following}", "")
    assert run("init", "-c", file) == (0, f"{lake}: all tables are there already\n{following}", "")
    assert file.read_text() == written


@pytest.mark.parametrize("command", [["init", "-c"], ["generate"]])
def test_what_cannot_be_written(run, file: Path, command: list[str]) -> None:
    code, out, err = run(*command, file / "below" / "a-file.yaml")
    assert (code, out) == (2, "")
    assert f"{file}/below" in err
    assert "cannot be written (Not a directory)" in err
    assert len(err.split("\n")) <= 3


def test_validate(run, file: Path) -> None:
    code, out, err = run("validate", "-c", file)
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "primary: records read 1, good 1, would go to quarantine 0",
        "foreign: records read 1, good 1, would go to quarantine 0",
        "1 of 1 sampled foreign events find their primary event among the first 1 primary events",
        "shares: primary quarantine 0.0%, foreign quarantine 0.0%, unmatched 0.0%, ids with several times 0.0%",
        f"{file}: no problem found",
    ]
    code, out, _ = run("validate", "-c", file, "--json")
    assert (code, json.loads(out)) == (0, {
        "file": str(file), "ok": True, "problems": [],
        "streams": {name: {"read": 1, "good": 1, "bad": []} for name in ("primary", "foreign")},
        "matches": {"foreign": 1, "found": 1, "primary": 1, "problem": "", "several": 0},
        "shares": dict.fromkeys(("primary quarantine", "foreign quarantine", "unmatched", "doubled"), 0.0),
    })  # fmt: skip


def test_validate_finds_something(run, file: Path) -> None:
    (file.parent / "logs" / "clicks" / "0.jsonl").unlink()
    code, out, _ = run("validate", "-c", file)
    assert code == 1
    assert out.splitlines()[-1].startswith(f"{file}: foreign.source")
    code, out, _ = run("validate", "-c", file, "--json")
    assert (code, json.loads(out)["ok"], len(json.loads(out)["problems"])) == (1, False, 1)


def test_generate_from_a_given_start(run, tmp_path: Path) -> None:
    for name in ("one", "two"):
        run("generate", tmp_path / name, "--clicks", 50, "--queries", 20, "--start", "2026-03-01T12:00Z")
    logs = [sorted((tmp_path / name).glob("*/*.jsonl")) for name in ("one", "two")]
    assert [path.read_bytes() for path in logs[0]] == [path.read_bytes() for path in logs[1]]
    times = [
        int(json.loads(line)["event_id"].rsplit(":", 1)[1])
        for path in logs[0]
        for line in path.read_text().splitlines()
    ]
    noon = datetime(2026, 3, 1, 12, tzinfo=UTC).timestamp() * 1_000_000
    assert noon <= min(times) < noon + 600_000_000
    assert run("generate", tmp_path / "three", "--start", "noon")[0] == 2


def test_generate_stopped_by_a_signal_writes_the_truth(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT / "spark_apps")}
    command = [
        sys.executable,
        "-m",
        "clickjoin.cli",
        "generate",
        str(tmp_path),
        "--rate",
        "50",
        "--clicks",
        "5000",
    ]
    with subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while not any(path.stat().st_size for path in tmp_path.glob("queries/*")):
            assert process.poll() is None
            time.sleep(0.05)
        process.terminate()
        assert process.wait(timeout=30) == 130
    truth = json.loads((tmp_path / "truth.json").read_text())
    written = sum(len(path.read_bytes().splitlines()) for path in tmp_path.glob("queries/*"))
    assert (truth["complete"], truth["queries"]["lines"]) == (False, written)


@pytest.mark.parametrize("command", ["init", "run", "drain", "retry", "redrive", "validate"])
def test_a_lake_that_cannot_be_made(run, file: Path, command: str) -> None:
    (file.parent / "lake").write_text("no folder")
    code, out, err = run(command, "-c", file)
    words = f"{file.parent}/lake/clicks: cannot be made, since {file.parent}/lake is no folder"
    assert words in (out if command == "validate" else err)
    assert (code, err.count("\n")) == ((1, 0) if command == "validate" else (2, 1))


def test_a_lake_that_cannot_be_written_to(run, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("init", "-c", file)
    allowed = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: "joined" not in str(path) and allowed(path, mode))
    for command in ("validate", "drain"):
        code, out, err = run(command, "-c", file)
        assert f"lake/clicks: cannot be written to ({file.parent}/lake/clicks/joined/_delta_log)" in out + err
        assert code == (1 if command == "validate" else 2)


def test_a_first_verification_may_come_before_the_first_join(file: Path) -> None:
    """Airflow begins all DAGs that are switched on at once."""
    pipeline = load(file)
    found = JOBS["verify"].run(None, pipeline, "main", print, lake_exists=False)
    assert found == {"ok": True, "verdict": f"{pipeline.root}: no tables yet, so nothing to verify"}
    assert not Path(pipeline.root).exists()


@pytest.mark.parametrize("app", ["join", "retry", "gc", "verify"])
def test_a_lake_that_is_gone_is_not_begun_again(file: Path, app: str) -> None:
    pipeline = load(file)
    with pytest.raises(LakeError, match="holds no tables of this pipeline"):
        JOBS[app].run(None, pipeline, "main", print, lake_exists=True)
    assert not Path(pipeline.root).exists()
