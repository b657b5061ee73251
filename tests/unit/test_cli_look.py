"""Commands that look, and how what they print looks: status, explain, export, a restore, titles and ids."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from clickjoin.cli import console, inspect
from clickjoin.config import load
from clickjoin.engines.arrow import ArrowTables


def test_without_a_lake(run, file: Path) -> None:
    for arguments in (["status"], ["explain", "a:1:1"]):
        code, _, err = run(*arguments, "-c", file)
        assert code == 2
        assert "no such table. Check that the lake is mounted; a new one is made by `clickjoin init`" in err
        assert err.count("\n") == 1


def test_status_and_explain(run, file: Path) -> None:
    run("init", "-c", file)
    code, out, _ = run("status", "-c", file, "--json")
    assert (code, json.loads(out)["pending"], json.loads(out)["rows"]["joined"]) == (0, 0, 0)
    code, out, _ = run("status", "-c", file)
    assert (code, "- pending: 0\n" in out) == (0, True)
    code, out, _ = run("explain", "a:1:1", "-c", file)
    assert code == 1
    assert out.startswith("a:1:1: unknown. No record with this id has landed")
    code, out, _ = run("explain", "a:1:1", "-c", file, "--json")
    assert (code, json.loads(out)["state"]) == (1, "unknown")


@pytest.mark.parametrize("known", [None, datetime(2026, 3, 1, tzinfo=UTC)])
def test_status_says_why_there_is_no_watermark(known: datetime | None, capsys: pytest.CaptureFixture[str]) -> None:
    part = {"watermark": known, "totals": {}, "problems": [], "last": []}
    inspect.show_status("shop", {"engine": "arrow", "rows": {}, "pending": 0, "replicas": {"main": part}})
    assert ("no watermark yet: each stream" in capsys.readouterr().out) == (known is None)


def test_explain_shows_whole_values(run, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("init", "-c", file)
    payload = '{"text": "' + "a [bold]long[/] one " * 40 + '"}'
    row = {"event_id": "a:1:1", "bucket": "1970-01-01T0000Z", "shard": 0, "batch": 1, "payload": payload}
    ArrowTables(load(file).root).append("foreign", [row])
    monkeypatch.setenv("COLUMNS", "40")
    code, out, _ = run("explain", "a:1:1", "-c", file)
    assert code == 0
    assert f"  payload: {payload}\n" in out


def test_nothing_to_export(run, file: Path, tmp_path: Path) -> None:
    run("init", "-c", file)
    code, _, err = run("quarantine", "export", "-c", file, "--out", tmp_path / "out")
    assert (code, "no such record is in quarantine" in err) == (2, True)
    assert not (tmp_path / "out").exists()
    code, _, err = run("quarantine", "export", "-c", file, "--out", tmp_path / "out", "--reason", "odd")
    assert (code, "Reasons are broken-json" in err) == (2, True)


def test_ids_are_printed_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    """`:100:` and `:x:` are codes of pictures elsewhere, and parts of ids and adapters' names here."""
    for say in (console.report_line, console.batch_line(as_json=False)):
        say("10.1.0.1:100:1795345839691993 shop.nope:x:")
        assert capsys.readouterr().out == "10.1.0.1:100:1795345839691993 shop.nope:x:\n"


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


def test_status_names_ids_that_are_too_frequent(run, file: Path) -> None:
    """Among the records that landed last; those of before are another day's."""
    run("init", "-c", file)
    tables = ArrowTables(load(file).root)

    def land(batch: int, names: list[str]) -> None:
        at = datetime(2026, 3, 1, 12, tzinfo=UTC)
        row = {"event_time": at, "bucket": "2026-03-01T1200Z", "shard": 0, "batch": batch, "primary_id": "q"}
        tables.append("foreign", [row | {"event_id": name} for name in names])

    def named() -> list[str]:
        code, out, _ = run("status", "-c", file)
        found = json.loads(run("status", "-c", file, "--json")[1])["frequent_ids"]
        assert code == 0
        assert out.count("problem: frequent-id: ") == len(found)
        return list(found)

    land(1, [f"c{n}" for n in range(100)])
    assert named() == []
    land(2, ["undefined"] * 12 + [f"d{n}" for n in range(20)])
    (said,) = named()
    assert said.startswith("foreign.event_id: 12 of 132 sampled records have the id 'undefined'")
    for batch in range(3, 36):
        land(batch, [f"{batch}-{n}" for n in range(4)])
    assert named() == []
