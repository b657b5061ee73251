"""The command line where it needs no Spark: what is refused, its exit codes, one clear message for an error."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from clickjoin.config import load
from clickjoin.config.starter import STARTER
from clickjoin.engines.arrow import ArrowTables
from clickjoin.model.errors import ConfigError
from clickjoin.verification.verify import Wanted

ROOT = Path(__file__).parents[2]


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


@pytest.mark.parametrize("arguments", [["run", "--lease", "-1"], ["status", "--last", "-1"], ["status", "--last", "0"]])
def test_numbers_that_make_no_sense(run, file: Path, arguments: list[str]) -> None:
    code, _, err = run(*arguments, "-c", file)
    assert code == 2
    assert "Input should be greater than or equal to" in err


def test_unknown_options_are_a_usage_error(run, file: Path) -> None:
    code, _, err = run("validate", "-c", file, "--colour")
    assert (code, "Traceback" in err) == (2, False)
    assert run("validate")[0] == 2


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


def test_a_request_to_forget_that_names_nothing(run, file: Path) -> None:
    run("init", "-c", file)
    code, _, err = run("forget", "-c", file, "--where", "user_id=U17")
    assert (code, "Write STREAM.PATH=VALUE" in err, "U17" in err.split("Write")[0]) == (2, True, False)
    code, _, err = run("forget", "-c", file, "--ids", file.parent / "none")
    assert (code, "none: cannot be read" in err) == (2, True)
    assert run("forget", "-c", file, "--list") == (0, "", "")
    row = {"stream": "foreign", "event_id": "a:1:1", "event_time": datetime.now(UTC), "at": datetime.now(UTC)}
    ArrowTables(load(file).root).append("forgotten", [row, {**row, "event_id": None, "digest": "d"}])
    assert run("forget", "-c", file, "--list") == (0, "a:1:1\n", "")
