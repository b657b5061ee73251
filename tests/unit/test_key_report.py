"""How one key of per-key processing stands, and its chart: nothing that is not in the tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from typer.testing import CliRunner

from clickjoin.cli.main import app
from clickjoin.model.errors import ClickjoinError
from clickjoin.model.ids import moment
from clickjoin.processing import key_counts as counting
from clickjoin.processing.key_counts import key_counts
from clickjoin.processors import SpikesAndDips, Work
from clickjoin.processors.port import SIGNALS
from clickjoin.report.processing import explain_key, key_chart
from tests.unit.processing_bench import DAY, FIRST, HOUR, MINUTE, NOON, SECOND, Output, two_batches

SPIKES = {"processor": "clickjoin.processors:SpikesAndDips", "args": {"window": "1m", "min_count": 5, "season": "1d"}}
EVIL = "<script>alert(1)</script>"
MIDNIGHT = NOON - 12 * HOUR


def steady(folder: Path) -> Output:
    """Two days of ten events a minute for ten minutes of each hour, then a minute with forty; and a key of markup."""
    out = Output(folder, SPIKES)
    days = range(MIDNIGHT - 2 * DAY, NOON, HOUR)
    times = [hour + at * MINUTE + n * SECOND for hour in days for at in range(0, 60, 6) for n in range(10)]
    out.publish([(f"e{n}", "shoes", at) for n, at in enumerate(times)], NOON)
    out.drain()
    burst = [(f"b{n}", "shoes", NOON + n * SECOND) for n in range(40)] + [("x", EVIL, NOON + 90 * SECOND)]
    out.publish(burst, NOON + 3 * MINUTE)
    out.drain()
    return out


def _row(out: Output, key: str) -> pa.Table:
    """The newest row of a key in `state`."""
    rows = pa.table(out.table("process/state").to_pyarrow_table())
    return rows.filter(pc.equal(rows["key"], key)).sort_by([("batch", "descending")]).slice(0, 1)


def test_counts_are_those_of_the_output(tmp_path: Path) -> None:
    out = two_batches(tmp_path)
    found = key_counts(out.pipeline, "shoes", moment(NOON), moment(NOON + 2 * MINUTE), 30 * SECOND)
    assert found.counts == {NOON: 2, NOON + 30 * SECOND: 1}
    assert key_counts(out.pipeline, "shoes", moment(NOON + SECOND), moment(NOON + 40 * SECOND), MINUTE).counts == {
        NOON: 1
    }
    assert key_counts(out.pipeline, "none", moment(NOON), moment(NOON + DAY), MINUTE).counts == {}
    later = key_counts(out.pipeline, "shoes", moment(NOON + DAY), moment(NOON + 2 * DAY), MINUTE)
    assert (later.counts, later.rows) == ({}, 0)  # the log says that no file holds any


def test_a_key_of_several_parts_inside_a_record(tmp_path: Path) -> None:
    out = Output(tmp_path, {"key": ["record.id", "item"]})
    out.publish(FIRST, NOON)
    assert key_counts(out.pipeline, '["a1","shoes"]', moment(NOON), moment(NOON + MINUTE), MINUTE).counts == {NOON: 1}


def test_too_much_is_refused_and_not_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = two_batches(tmp_path)
    monkeypatch.setattr(counting, "MOST_ROWS", 2)
    with pytest.raises(ClickjoinError, match="files with 5 rows may hold events"):
        key_counts(out.pipeline, "shoes", moment(NOON), moment(NOON + DAY), MINUTE)


def test_a_chart_around_the_newest_signal(tmp_path: Path) -> None:
    out = steady(tmp_path)
    chart = key_chart(out.pipeline, "shoes", moment(NOON))
    (spike,) = [row for row in chart["signals"] if row["window_start"] == moment(NOON)]
    assert (spike["kind"], chart["seconds"], chart["late"]) == ("spike", 60, 0)
    assert [NOON // SECOND, 40] in chart["counts"]
    assert sum(count for _, count in chart["counts"]) == 40 + 100
    said = [band for band in chart["bands"] if band["of"] == "spike"]
    assert said == [{"from": moment(NOON), "to": moment(NOON + MINUTE), "of": "spike", "windows": 1}
                    | {name: spike[name] for name in ("expected", "low", "high")}]  # fmt: skip
    (now,) = [band for band in chart["bands"] if band["of"] == "now"]
    assert (now["from"], now["to"]) == (moment(NOON), moment(NOON + HOUR))
    assert (now["expected"], now["high"]) == (pytest.approx(spike["expected"], abs=1e-3), spike["high"])


def test_the_last_event_may_lie_in_an_open_window(tmp_path: Path) -> None:
    out = Output(tmp_path, SPIKES)
    out.publish([("a", "shoes", NOON), ("b", "shoes", NOON + 5 * MINUTE)], NOON + 2 * MINUTE)
    out.drain()
    found = explain_key(out.pipeline, "shoes")
    assert [(row["window_start"], row["count"]) for row in found["open"]] == [(moment(NOON + 5 * MINUTE), 1)]
    assert (found["first_event"], found["last_event"]) == (moment(NOON), moment(NOON + 5 * MINUTE))


def test_a_chosen_range_ends_where_the_processing_is(tmp_path: Path) -> None:
    out = steady(tmp_path)
    day = key_chart(out.pipeline, "shoes", moment(0), "1d")
    assert day["until"] == moment(NOON + 4 * MINUTE)
    assert sum(count for _, count in day["counts"]) == 40 + 24 * 100 - 10  # a day before is the minute 12:03
    week = key_chart(out.pipeline, "shoes", moment(0), "7d")
    assert (week["seconds"], week["bands"]) == (420, [])  # a band of one window is none of seven
    assert sum(count for _, count in week["counts"]) == 40 + 60 * 100
    with pytest.raises(ClickjoinError, match="no such range"):
        key_chart(out.pipeline, "shoes", moment(0), "1y")


def test_a_key_that_nobody_knows(tmp_path: Path) -> None:
    out = two_batches(tmp_path)
    chart = key_chart(out.pipeline, "none", moment(NOON))
    assert (chart["counts"], chart["bands"], chart["signals"]) == ([], [], [])
    assert explain_key(out.pipeline, "none")["has_state"] is False


def test_how_keys_stand(tmp_path: Path) -> None:
    out = steady(tmp_path)
    out.publish([("late", "shoes", NOON), ("open", "shoes", NOON + 4 * MINUTE)], NOON + 4 * MINUTE)
    out.drain()
    found = explain_key(out.pipeline, "shoes")
    assert found["open"] == [
        {"window_start": moment(NOON + 4 * MINUTE), "window_end": moment(NOON + 5 * MINUTE), "count": 1}
    ]
    assert [row["event_id"] for row in found["late"]] == ["late"]
    assert found["signals"][0]["kind"] == "spike"
    assert found["expected"]["low"] < found["expected"]["expected"] < found["expected"]["high"]
    assert found["first_event"] == moment(MIDNIGHT - 2 * DAY)
    assert found["looked_at_again"] == moment(NOON + 5 * MINUTE)
    assert found["watermark"] == moment(NOON + 4 * MINUTE)


def test_the_band_is_what_the_processor_goes_by(tmp_path: Path) -> None:
    """One more than `high` is a spike, and `high` is none."""
    out = steady(tmp_path)
    band = explain_key(out.pipeline, "shoes")["expected"]
    processor = SpikesAndDips(**SPIKES["args"])  # type: ignore[arg-type]
    row = _row(out, "shoes").select(processor.state.names)
    at = NOON + 20 * MINUTE  # its rest is over
    for count in (int(band["high"]), int(band["high"]) + 1):
        work = Work(
            pa.array(["shoes"]), row, np.ones(1, bool), np.zeros(count, np.int64), np.full(count, at), at + MINUTE, 0
        )
        said = processor.process(work).signals
        assert said.schema == SIGNALS
        assert ("spike" in said["kind"].to_pylist()) is (count > band["high"])


def test_the_command(tmp_path: Path) -> None:
    out = steady(tmp_path)

    def ask(*args: str) -> Any:
        return CliRunner().invoke(app, ["explain", "--config", str(out.file), *args])

    said = ask("--key", "shoes")
    assert said.exit_code == 0
    assert "expected per window" in said.output
    assert "spike" in said.output
    assert json.loads(ask("--key", EVIL, "--json").output)["key"] == EVIL
    assert ask("--key", "none").exit_code == 1
    assert ask("--key", "a", "e1").exit_code == ask().exit_code != 0
