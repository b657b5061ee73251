"""Quality of per-key processing: sums, ids and late events of a date."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from clickjoin.config.quality import Quality
from clickjoin.model.span import Day
from clickjoin.quality import suites
from clickjoin.quality.checks import Check, Outcome
from clickjoin.quality.history import History
from clickjoin.quality.measure import Figures, Measured, processed
from clickjoin.quality.runner import Run
from tests.unit.processing_bench import HOUR, MINUTE, NOON, Output, two_batches

DAY = date(2024, 10, 4)  # of NOON


def checked(out: Output, rows: int, monkeypatch: pytest.MonkeyPatch) -> dict[str, Check]:
    """The checks of processing, of a date whose output has so many rows."""
    for name in ("_joined", "_stream", "_foreign", "_registry"):
        monkeypatch.setattr(suites, name, lambda *_: ())
    figures: Any = Figures(DAY, {"joined": {"rows": rows}}, {}, {}, 0, alone=True)
    figures = replace(figures, processed=processed(out.pipeline, Day(DAY).span))
    return {one.name: one for one in suites.checks(Quality(), figures, History([], DAY, 0, 0))}


def red(found: dict[str, Check]) -> dict[str, str]:
    """Names and levels of those that are broken."""
    asked = {name: (one.observed, *pair) for name, one in found.items() if (pair := one.asked())}
    return {name: level for name, (value, bounds, level) in asked.items() if not bounds.hold(value or 0)}


def test_a_date_that_was_processed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = two_batches(tmp_path)
    found = checked(out, 5, monkeypatch)
    assert found["every_event_counted"].undecided == ""
    out.drain()
    found = checked(out, 5, monkeypatch)
    assert (sorted(found), red(found)) == (["every_event_counted", "late_rate", "unique_ids"], {})
    out.publish([("x", "hats", NOON - HOUR), ("y", None, NOON + 90 * MINUTE)], NOON + MINUTE)
    out.drain()
    found = checked(out, 7, monkeypatch)
    assert (red(found), found["late_rate"].observed) == ({"late_rate": "warn"}, 1 / 7)


def test_what_is_broken_is_red(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = two_batches(tmp_path)
    out.drain()
    rows = out.table("process/signals").to_pyarrow_table()
    out.table("process/signals").delete("key = 'hats'")
    found = checked(out, 5, monkeypatch)
    assert red(found) == {"every_event_counted": "fail"}
    assert "`signals` holds 1 rows, and batches have committed 2" in found["every_event_counted"].look
    out.write_table("process/signals", rows)
    assert red(checked(out, 5, monkeypatch)) == {"every_event_counted": "fail", "unique_ids": "fail"}


def test_what_was_never_processed_is_undecided(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = Output(tmp_path)
    assert {one.undecided[:24] for one in checked(out, 5, monkeypatch).values()} == {"nothing was processed ye"}
    out.pipeline = out.pipeline.model_copy(update={"process": None})
    assert processed(out.pipeline, Day(DAY).span) is None


def test_a_red_check_of_signals_has_no_rows_to_show() -> None:
    late = Outcome("signals", "late_rate", "at most 1 %", None, "warn", success=False, observed=0.05, expected="0.01")
    nothing: Any = None
    run = object.__new__(Run)
    assert run._with_samples(Measured(nothing, {}, nothing), [late]) == [late]
