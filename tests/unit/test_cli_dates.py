"""Commands about dates: backfills that are refused, and what is printed of dates."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from clickjoin.cli import job_commands, listing
from clickjoin.config import load
from clickjoin.dates.ledger import require_run
from clickjoin.engines.arrow import ArrowTables
from clickjoin.jobs.dates import _verdict


def test_a_backfill_goes_on_only_with_a_run_that_was(run, file: Path) -> None:
    run("init", "-c", file)
    delta = ArrowTables(load(file).root)
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
    ArrowTables(load(file).root).append("dates", [row | counts | {"revision": 1, "faults": 3, "joined": 5}])
    monkeypatch.setenv("COLUMNS", "80")
    _, out, _ = run("dates", "-c", file)
    assert all(word in out for word in ("2026-03-01", "failing", "faults", "joined", "main/1"))
    assert "unjoinable" not in out


def test_heads_of_dates_are_whole(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Off a terminal, which is 80 columns wide by default: all counts at once are wider."""
    monkeypatch.setenv("COLUMNS", "80")
    counts = dict.fromkeys(listing.COUNTS, 1_234_567)
    row = {"date": date(2026, 3, 1), "state": "open", "revision": 1, "run": "backfill-20260301T120000", "detail": "why"}
    listing.show_dates([row | counts], as_json=False)
    lines = capsys.readouterr().out.splitlines()
    assert all(name in lines[0] for name in ("revision", *listing.COUNTS))
    assert (row["run"] in lines[1], lines[-1]) == (True, "2026-03-01: why")


def test_a_backfill_says_once_why_a_date_is_not_closed(capsys: pytest.CaptureFixture[str]) -> None:
    row = {"date": "2026-03-01", "state": "open", "revision": 0, "run": "r", "detail": "the input is late", "ok": False}
    result = {"dates": [row | dict.fromkeys(listing.COUNTS, 0)], "errors": {"2026-03-02": "no such lake"}}
    verdict = _verdict(result, 3)
    (backfill,) = (command for command in job_commands.COMMANDS if command.name == "backfill")
    backfill.show(result | verdict)
    said = "2 of 3 dates are not closed: 2026-03-01 is open, 2026-03-02 has failed"
    assert verdict == {"ok": False, "verdict": said}
    assert capsys.readouterr().out.splitlines()[-1] == said
    filled = {"dates": [row | {"ok": True}, row | {"state": "closed", "ok": True}], "errors": {}}
    assert _verdict(filled, 2) == {"ok": True, "verdict": "1 of 2 dates are not closed: 2026-03-01 is open"}
    closed = {"dates": [row | {"state": "closed", "ok": True}], "errors": {}}
    assert _verdict(closed, 1) == {"ok": True, "verdict": "1 date is closed"}
