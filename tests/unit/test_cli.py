"""The command line where it needs no Spark: what it prints, its exit codes, and one clear message for an error."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from clickjoin.cli import console, console_dates, main
from clickjoin.config import load
from clickjoin.config.starter import STARTER
from clickjoin.dates.ledger import require_run
from clickjoin.jobs.all_jobs import JOBS
from clickjoin.jobs.dates import _verdict
from clickjoin.lake import DeltaTables
from clickjoin.model.errors import ConfigError, LakeError
from clickjoin.schemas import ALL
from clickjoin.verification.verify import Wanted

ROOT = Path(__file__).parents[2]
LINE = '{"event_id": "a:1:1600000000000000", "query_id": "a:1:1600000000000000"}\n'


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Runs a command as the shell would; returns exit code, stdout and stderr."""
    monkeypatch.setenv("COLUMNS", "200")

    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["clickjoin", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            main.main()
        out = capsys.readouterr()
        return int(stopped.value.code or 0), out.out, out.err

    return call


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A pipeline's file with logs beside it."""
    for name in ("queries", "clicks"):
        (tmp_path / "logs" / name).mkdir(parents=True)
        (tmp_path / "logs" / name / "0.jsonl").write_text(LINE)
    file = tmp_path / "p.yaml"
    file.write_text(STARTER)
    return file


def test_schema(run) -> None:
    code, out, err = run("schema")
    assert (code, err) == (0, "")
    for table in ALL:
        assert f"{table.name}: " in out
        assert all(column.name in out for column in table.columns)


def test_schema_as_json(run) -> None:
    _, out, _ = run("schema", "--json")
    assert {name: [c["name"] for c in columns] for name, columns in json.loads(out).items()} == {
        table.name: table.names for table in ALL
    }


def test_schema_as_markdown(run) -> None:
    _, out, _ = run("schema", "--markdown")
    assert out.startswith("# Tables\n")
    assert all(f"\n## {table.name}\n" in out for table in ALL)


def test_schema_of_the_file(run) -> None:
    code, out, _ = run("schema", "--config-file")
    assert code == 0
    assert set(json.loads(out)["required"]) == {"pipeline", "lake", "primary", "foreign"}


def test_init_thrice(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, here = tmp_path / "new" / "p.yaml", tmp_path / 'a "b" *c'
    here.mkdir()
    monkeypatch.chdir(here)
    code, out, _ = run("init", "--config", file)
    assert code == 0
    assert out == (
        f"{file} written: edit it (your logs' folders, your columns), then `clickjoin validate --config {file}` says "
        f"what is wrong, and `clickjoin drain --config {file}` joins all\n"
    )
    written, lake = file.read_text(), here / "lake" / "clicks"
    copied = load(shutil.copy(file, tmp_path / "copy.yaml"))
    assert (copied.root, copied) == (str(lake), load(file))
    assert copied.foreign.source.path == f'{tmp_path}/a "b" [*]c/logs/clicks/*.jsonl'
    assert run("init", "-c", file) == (0, f"{lake}: created {len(ALL)} tables\n", "")
    assert run("init", "-c", file) == (0, f"{lake}: all tables are there already\n", "")
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
        f"{file}: all is well",
    ]
    code, out, _ = run("validate", "-c", file, "--json")
    assert (code, json.loads(out)) == (0, {
        "file": str(file), "ok": True, "problems": [],
        "streams": {name: {"read": 1, "good": 1, "bad": []} for name in ("primary", "foreign")},
        "matches": {"foreign": 1, "found": 1, "primary": 1, "problem": ""},
    })  # fmt: skip


def test_validate_finds_something(run, file: Path) -> None:
    (file.parent / "logs" / "clicks" / "0.jsonl").unlink()
    code, out, _ = run("validate", "-c", file)
    assert code == 1
    assert out.splitlines()[-1].startswith(f"{file}: foreign.source")
    code, out, _ = run("validate", "-c", file, "--json")
    assert (code, json.loads(out)["ok"], len(json.loads(out)["problems"])) == (1, False, 1)


@pytest.mark.parametrize("command", ["init", "validate", "run", "drain", "retry", "redrive", "status", "gc", "reshard"])
def test_a_bad_file_is_one_message(run, file: Path, command: str) -> None:
    file.write_text(STARTER.replace("shards: 4", "shards: 0"))
    code, out, err = run(command, "--config", file)
    assert (code, out) == (2, "")
    assert err.startswith(f"clickjoin: {file}:\n  registry.shards: Input should be greater than or equal to 1")
    assert err.endswith("See `clickjoin schema --config-file`\n")
    assert "Traceback" not in err


def test_errors_as_json(run, tmp_path: Path) -> None:
    code, out, err = run("status", "--config", tmp_path / "none.yaml", "--json")
    assert code == 2
    assert json.loads(out)["error"] == "ConfigError"
    assert f"{tmp_path}/none.yaml: cannot be read" in json.loads(out)["message"] in err


def test_without_a_lake(run, file: Path) -> None:
    for arguments in (["status"], ["explain", "a:1:1"]):
        code, _, err = run(*arguments, "-c", file)
        assert code == 2
        assert "no such table. Check that the lake is mounted, else run `clickjoin init` with this pipeline" in err
        assert err.count("\n") == 1


@pytest.mark.parametrize("command", ["run", "drain"])
def test_a_name_that_only_a_backfill_gives(run, file: Path, command: str) -> None:
    code, _, err = run(command, "-c", file, "--replica", "backfill-0a1b2c3d")
    assert code == 2
    assert "are of replicas that read a backfill's raw logs. Choose another name" in err
    assert not (file.parent / "lake").exists()


@pytest.mark.parametrize("command", ["run", "drain", "retry", "redrive", "gc"])
@pytest.mark.parametrize("name", ["A/b", "", "9", "east\n", "a" * 64])
def test_a_name_that_no_replica_can_have(run, file: Path, command: str, name: str) -> None:
    code, _, err = run(command, "-c", file, "--replica", name)
    assert code == 2
    assert "is no name of a replica. Write a-z, 0-9, - and _" in err
    assert not (file.parent / "lake").exists()


def test_no_server(run, file: Path) -> None:
    code, _, err = run("drain", "-c", file, "--spark-connect", "sc://localhost:1")
    assert code == 3
    assert "clickjoin: sc://localhost:1: no Spark Connect server answers (ConnectionRefusedError). Start it" in err


def test_an_address_that_would_hang(run, file: Path) -> None:
    code, _, err = run("drain", "-c", file, "--spark-connect", "sc://127.0.0.1:15002/;token=secret")
    assert code == 2
    assert "use sc://localhost" in err
    assert "secret" not in err


def test_address_file_that_is_not_there(run, file: Path, tmp_path: Path) -> None:
    code, _, err = run("drain", "-c", file, "--spark-connect", tmp_path / "none")
    assert code == 2
    assert f"{tmp_path}/none" in err


def test_status_and_explain(run, file: Path) -> None:
    run("init", "-c", file)
    code, out, _ = run("status", "-c", file, "--json")
    assert (code, json.loads(out)["pending"], json.loads(out)["rows"]["joined"]) == (0, 0, 0)
    code, out, _ = run("status", "-c", file)
    assert (code, "pending now" in out) == (0, True)
    code, out, _ = run("explain", "a:1:1", "-c", file)
    assert code == 1
    assert out.startswith("a:1:1: unknown. No record with this id has landed")
    code, out, _ = run("explain", "a:1:1", "-c", file, "--json")
    assert (code, json.loads(out)["state"]) == (1, "unknown")


def test_explain_shows_whole_values(run, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("init", "-c", file)
    payload = '{"text": "' + "a [bold]long[/] one " * 40 + '"}'
    row = {"event_id": "a:1:1", "bucket": "1970-01-01T0000Z", "shard": 0, "batch": 1, "payload": payload}
    DeltaTables(load(file).root).append("foreign", [row])
    monkeypatch.setenv("COLUMNS", "40")
    code, out, _ = run("explain", "a:1:1", "-c", file)
    assert code == 0
    assert f"  payload: {payload}\n" in out


@pytest.mark.parametrize("arguments", [["run", "--lease", "-1"], ["status", "--last", "-1"], ["status", "--last", "0"]])
def test_numbers_that_make_no_sense(run, file: Path, arguments: list[str]) -> None:
    code, _, err = run(*arguments, "-c", file)
    assert code == 2
    assert "Input should be greater than or equal to" in err


def test_jobs_as_json(run) -> None:
    code, out, _ = run("schema", "--jobs", "--json")
    assert (code, list(json.loads(out))) == (0, list(JOBS))
    wait = json.loads(out)["gc"]["arguments"]["wait"]
    assert (wait["type"], wait["default"], wait["minimum"], wait["required"]) == ("number", 60.0, 0, False)
    assert run("schema", "--jobs", "--markdown")[0] == 2


def test_one_kind_of_schema_at_a_time(run) -> None:
    for other in ("--markdown", "--json"):
        code, out, err = run("schema", "--config-file", other)
        assert (code, out if other != "--json" else "") == (2, "")
        assert "--config-file goes with no other option" in err


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


def test_nothing_to_export(run, file: Path, tmp_path: Path) -> None:
    run("init", "-c", file)
    code, _, err = run("quarantine", "export", "-c", file, "--out", tmp_path / "out")
    assert (code, "no such record is in quarantine" in err) == (2, True)
    assert not (tmp_path / "out").exists()
    code, _, err = run("quarantine", "export", "-c", file, "--out", tmp_path / "out", "--reason", "odd")
    assert (code, "Reasons are broken-json" in err) == (2, True)


def test_unknown_options_are_a_usage_error(run, file: Path) -> None:
    code, _, err = run("validate", "-c", file, "--colour")
    assert (code, "Traceback" in err) == (2, False)
    assert run("validate")[0] == 2


def test_help_names_every_command(run) -> None:
    _, out, _ = run("--help")
    for name in [
        "init", "validate", "run", "drain", "retry", "redrive", "status", "explain", "schema", "generate", "gc",
        "reshard", "quarantine", "pending", "unjoinable", "expired",
    ]:  # fmt: skip
        assert name in out


def test_in_a_process_of_its_own(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT / "spark_apps")}
    command = [sys.executable, "-m", "clickjoin.cli", "status", "--config", str(tmp_path / "none.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"clickjoin: {tmp_path}/none.yaml: cannot be read")
    assert "Traceback" not in done.stderr


def test_options_that_would_do_nothing_alone(run, file: Path) -> None:
    run("init", "-c", file)
    code, _, err = run("reshard", "-c", file, "--from", "2030-01-01T00:00Z")
    assert (code, "Give --shards, or leave out --from" in err) == (2, True)
    with pytest.raises(ConfigError, match="Add --repair"):
        Wanted(remove_doubles=True)


@pytest.mark.parametrize("app", ["join", "retry", "gc"])
def test_a_lake_that_is_gone_is_not_begun_again(file: Path, app: str) -> None:
    pipeline = load(file)
    with pytest.raises(LakeError, match="holds no tables of this pipeline"):
        JOBS[app].run(None, pipeline, "main", print, lake_exists=True)
    assert not Path(pipeline.root).exists()


def test_a_backfill_goes_on_only_with_a_run_that_was(run, file: Path) -> None:
    run("init", "-c", file)
    delta = DeltaTables(load(file).root)
    row = {"date": date(2026, 3, 1), "at": datetime.now(UTC), "action": "fill", "state": "open", "run": "backfill-7"}
    delta.append("dates", [row | {"revision": 0, "faults": 0, "failed": 0, "warned": 0}])
    code, _, err = run("backfill", "-c", file, "--from", "2026-03-01", "--run", "backfil-7")
    assert code == 2
    assert "run backfil-7 has finished no date; the last ones that have: backfill-7" in err
    require_run(delta, "backfill-20260301T101112")  # as runs are named: killed before it had finished its first date


@pytest.mark.parametrize("option", ["--primary", "--foreign"])
def test_a_backfill_takes_no_logs_from_elsewhere(run, file: Path, tmp_path: Path, option: str) -> None:
    (tmp_path / ".run").mkdir()
    begin = ("backfill", "-c", file, "--from", "2026-03-01", option)
    code, _, err = run(*begin, f"{tmp_path}/.run/*.json")
    assert (code, f"lies below {tmp_path}/.run, where passwords and keys are kept" in err) == (2, True)
    code, _, err = run(*begin, f"{tmp_path}/logs/clicks/../../*", "--dry-run")
    assert (code, f"{tmp_path}: raw logs are taken only below {tmp_path}/logs/queries," in err) == (2, True)
    assert "Move the logs there, or name their folder in backfill.roots of the pipeline's file" in err


def test_dates_shows_what_is_not_zero(run, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("init", "-c", file)
    row = {"date": date(2026, 3, 1), "at": datetime.now(UTC), "action": "close", "state": "failing", "run": "main/1"}
    counts = dict.fromkeys(("pending", "unjoinable", "expired", "filtered", "failed", "warned", "accepted"), 0)
    DeltaTables(load(file).root).append("dates", [row | counts | {"revision": 1, "faults": 3, "joined": 5}])
    monkeypatch.setenv("COLUMNS", "80")
    _, out, _ = run("dates", "-c", file)
    assert all(word in out for word in ("2026-03-01", "failing", "faults", "joined", "main/1"))
    assert "unjoinable" not in out


def test_ids_are_printed_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    """`:100:` and `:x:` are codes of pictures elsewhere, and parts of ids and adapters' names here."""
    for out in (console._out, console_dates._out):
        out.print("10.1.0.1:100:1795345839691993 shop.nope:x:")
        assert capsys.readouterr().out == "10.1.0.1:100:1795345839691993 shop.nope:x:\n"


def test_heads_of_dates_are_whole(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Off a terminal, which is 80 columns wide by default: all counts at once are wider."""
    monkeypatch.setenv("COLUMNS", "80")
    counts = dict.fromkeys(console_dates._COUNTS, 1_234_567)
    row = {"date": date(2026, 3, 1), "state": "open", "revision": 1, "run": "backfill-20260301T120000", "detail": "why"}
    console_dates.closed([row | counts], as_json=False)
    lines = capsys.readouterr().out.splitlines()
    assert all(name in lines[1] for name in ("revision", *console_dates._COUNTS))
    assert (row["run"] in lines[3], lines[-1]) == (True, "2026-03-01: why")


def test_a_backfill_says_once_why_a_date_is_not_closed(capsys: pytest.CaptureFixture[str]) -> None:
    row = {"date": "2026-03-01", "state": "open", "revision": 0, "run": "r", "detail": "the input is late", "ok": False}
    result = {"dates": [row | dict.fromkeys(console_dates._COUNTS, 0)], "errors": {"2026-03-02": "no such lake"}}
    verdict = _verdict(result, 3)
    console_dates.backfilled(result | verdict, as_json=False)
    said = "2 of 3 dates are not closed: 2026-03-01 is open, 2026-03-02 has failed"
    assert verdict == {"ok": False, "verdict": said}
    assert capsys.readouterr().out.splitlines()[-1] == said
    assert _verdict({"dates": [row | {"ok": True}], "errors": {}}, 1) == {"ok": True, "verdict": "1 date is closed"}


def test_what_is_begun_is_said_where_nothing_moves(capsys: pytest.CaptureFixture[str]) -> None:
    with console.starting("starting Spark"):
        pass
    assert capsys.readouterr().err == "starting Spark …\n"


def test_a_restore_says_that_it_takes_a_reshard_back(run, file: Path, tmp_path: Path) -> None:
    run("init", "-c", file)
    backups = tmp_path / "backups"
    assert run("backup", "-c", file, "--to", backups)[0] == 0
    assert run("reshard", "-c", file, "--shards", 8)[0] == 0
    code, out, _ = run("restore", "-c", file, "--from", backups, "--dry-run")
    assert (code, "the reshard to 8 shards from " in out, "would be taken back" in out) == (0, True, True)
    code, out, _ = run("restore", "-c", file, "--from", backups, "--force", "--json")
    assert (code, [entry["shards"] for entry in json.loads(out)["timeline"]]) == (0, [8])
    assert run("backup", "-c", file, "--to", backups)[0] == 0
    run("reshard", "-c", file, "--shards", 6)
    code, out, _ = run("restore", "-c", file, "--from", backups, "--force")
    assert f"was taken back: `clickjoin reshard --config {file} --shards 6` adds one again\n" in out
    assert "reshard to 8" not in out
    code, out, _ = run("restore", "-c", file, "--from", backups, "--force")
    assert (code, "taken back" in out) == (0, False)


def test_a_title_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    console.pairs("accounts of all runs: every record and every event", {"a": 1})
    assert capsys.readouterr().out.splitlines()[0] == "accounts of all runs: every record and every event"
