"""Quality of per-key processing: sums, ids and late events of a date."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from clickjoin.quality import counted
from clickjoin.quality.history import History
from clickjoin.quality.shipped import Shipped
from clickjoin.quality.suites import Facts, shipped
from tests.unit.processing_bench import Output, two_batches

NONE = History((), date(2026, 3, 1), 0, 1)


def facts(out: Output, rows: int) -> Facts:
    """What is known of a date whose output has so many rows."""
    why = counted.unknown(out.pipeline)
    return Facts(NONE, joined=rows, processed=why, sums="" if why else "; ".join(counted.sums(out.pipeline)))


def checks(out: Output, rows: int) -> dict[str, Shipped]:
    return {one.check: one for one in shipped(out.pipeline, facts(out, rows)) if one.check.startswith("signals.")}


def test_a_date_that_was_processed(tmp_path: Path) -> None:
    out = two_batches(tmp_path)
    assert checks(out, 5)["signals.every_event_counted"].undecided == ""
    out.drain()
    found = checks(out, 250)
    assert sorted(found) == ["signals.every_event_counted", "signals.late_rate", "signals.unique_ids"]
    assert (found["signals.late_rate"].args, found["signals.late_rate"].level) == ({"max_value": 2}, "warn")
    assert checks(out, 0)["signals.late_rate"].undecided == "the output has no rows of the date"
    assert counted.sums(out.pipeline) == ()


def test_what_is_broken_is_said(tmp_path: Path) -> None:
    out = two_batches(tmp_path)
    out.drain()
    out.table("process/signals").delete("key = 'hats'")
    look = checks(out, 5)["signals.every_event_counted"].look
    assert "`signals` holds 1 rows, and batches have committed 2" in look


def test_what_was_never_processed_is_undecided(tmp_path: Path) -> None:
    out = Output(tmp_path)
    assert {one.undecided[:24] for one in checks(out, 5).values()} == {"nothing was processed ye"}
    out.pipeline = out.pipeline.model_copy(update={"process": None})
    assert not [one for one in shipped(out.pipeline, Facts(NONE)) if one.check.startswith("signals.")]
