"""Per-key processing as it is used: its job, the sums, what was reported, keys, processors, and collecting."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from clickjoin.gc.processed import collect_processed
from clickjoin.jobs.processing import process
from clickjoin.model.errors import ConfigError, LakeError
from clickjoin.model.ids import moment
from clickjoin.processing.check import check
from clickjoin.processing.events import keys_of
from clickjoin.processing.state_rows import committed
from clickjoin.processors import KeyedProcessor, Said, Seen, TumblingCounts
from tests.unit.processing_bench import (
    HOUR,
    MINUTE,
    NOON,
    SECOND,
    Event,
    Output,
    by_text,
    expected,
    killed_at,
    two_batches,
)  # fmt: skip


def test_collecting_changes_nothing_that_counts(tmp_path: Path) -> None:
    out = Output(tmp_path)
    events, process_ = list[Event](), out.processing()
    for batch in range(52):
        new: list[Event] = [(f"{batch}", "shoes", NOON + batch * MINUTE), (f"old{batch}", "hats", NOON - HOUR)]
        events += new[:1] if batch else new
        out.publish(new, NOON + batch * MINUTE)
        process_.drain(lambda _: None)
    before = [out.rows(name) for name in ("signals", "late", "processed")]
    said: list[str] = []
    collect_processed(out.pipeline, moment(NOON + 24 * HOUR), said.append)
    assert [line.split(":")[0] for line in said] == ["process/signals", "process/late", "process/processed"]
    assert len(out.table("process/signals").file_uris()) == 1
    assert [out.rows(name) for name in ("signals", "late", "processed")] == before
    out.publish([], NOON + HOUR)
    out.drain()
    assert by_text(out.signals()) == expected(events, NOON + HOUR)


def test_signals_are_listed_and_a_key_as_it_stands(tmp_path: Path, run: Callable[..., tuple[int, str, str]]) -> None:
    out = Output(tmp_path)
    code, _, said = run("signals", "--config", out.file)
    assert (code, "nothing was processed yet. Run `clickjoin process`" in said) == (2, True)
    out = two_batches(tmp_path)
    out.publish([("x", "shoes", NOON - SECOND)], NOON + MINUTE)
    out.drain()
    code, text, _ = run("signals", "--config", out.file)
    assert (code, "2 signals have been reported" in text, "count  2" in text) == (0, True, True)
    code, text, _ = run("signals", "--config", out.file, "--key", "hats")
    assert "1 signal has been reported" in text
    assert "2024-10-04T12:02:00+00:00" in text  # the end of the window that is open
    code, text, _ = run("signals", "--config", out.file, "--key", "shoes", "--json")
    (row,) = [json.loads(line) for line in text.splitlines()]
    assert (row["key"], row["count"], row["window_start"]) == ("shoes", 3, "2024-10-04T12:00:00.000000Z")
    code, text, _ = run("signals", "--config", out.file, "--key", "shoes")
    assert "late events" in text


def test_a_run_on_schedule_waits_for_the_first_join(tmp_path: Path) -> None:
    out = Output(tmp_path)
    shutil.rmtree(tmp_path / "lake")
    found = process(None, out.pipeline, "", lambda _: None, 0.1)
    assert (found["batches"], "no tables yet" in found["watermark_rests_on"]) == (0, True)
    with pytest.raises(LakeError, match="holds no tables") as refused:
        process(None, out.pipeline, "", lambda _: None, 0)
    assert "`clickjoin drain` with the same file" in (refused.value.remedy or "")
    assert not (tmp_path / "lake").exists()


def test_sums_agree_while_another_process_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = two_batches(tmp_path)
    out.drain()
    looks = list[int]()

    def meanwhile(tables: Any, number: int) -> Any:
        if not looks:
            out.publish([("c1", "hats", NOON + 100 * SECOND), ("old", "hats", NOON)], NOON + 2 * MINUTE)
            out.drain()
        looks.append(number)
        return committed(tables, number)

    monkeypatch.setattr("clickjoin.processing.check.committed", meanwhile)
    found = check(out.pipeline)
    assert (found.events, found.signals, found.faults, found.notes, looks) == (5, 2, (), (), [2])


def test_a_batch_that_was_cut_short_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = two_batches(tmp_path)
    out.drain()
    out.publish([("c1", "hats", NOON + 100 * SECOND)], NOON + 2 * MINUTE)
    killed_at("process-state", monkeypatch, out.processing().once)
    monkeypatch.setattr("clickjoin.processing.check._PAUSE", 0)
    found = check(out.pipeline)
    assert (found.events, found.faults) == (5, ())
    assert found.notes[0].startswith("batch 3 is under way, or was cut short")


def test_sums_that_do_not_agree_are_named(tmp_path: Path, run: Callable[..., tuple[int, str, str]]) -> None:
    out = two_batches(tmp_path)
    code, text, _ = run("process", "--config", out.file)
    assert (code, "each event was counted once: 5 events and 0 late ones of 5 rows, 2 signals" in text) == (0, True)
    out.table("process/signals").delete("key = 'hats'")
    code, text, _ = run("process", "--config", out.file)
    assert (code, "`signals` holds 1 rows, and batches have committed 2" in text) == (1, True)
    out.table().delete("event_id = 'a1'")
    assert check(out.pipeline).notes == ()  # it is read up to the version before
    out.publish([("c1", "shoes", NOON + 100 * SECOND)], NOON + 2 * MINUTE)
    out.drain()
    (note,) = check(out.pipeline).notes
    assert note.startswith("1 events were counted whose rows have left the output since")


@pytest.mark.parametrize(
    ("process_", "said"),
    [
        ({"processor": "clickjoin.processors:Nothing"}, "has no class Nothing"),
        ({"processor": "no_such.module:X"}, "cannot be imported"),
        ({"processor": "clickjoin.config:Pipeline"}, "is no Processor"),
        ({"args": {"window": "1m", "wide": 3}}, "unexpected keyword argument 'wide'"),
        ({"args": {"window": "x"}}, "process.args.window"),
    ],
)
def test_a_processor_that_cannot_be_made_is_named(tmp_path: Path, process_: dict[str, Any], said: str) -> None:
    out = two_batches(tmp_path)
    out.write(**process_)
    with pytest.raises(ConfigError, match=said):
        out.drain()


@pytest.mark.parametrize(
    ("process_", "said"),
    [
        ({"processor": "clickjoin.processors:SpikesAndDips", "args": {}}, "processor was clickjoin.processors:Tumb"),
        ({"processor": "clickjoin.processors:SessionWindows", "args": {}}, "SessionWindows"),
        ({"args": {"window": "2m"}}, r"args was \{'window': '1m'\} and is \{'window': '2m'\}"),
        ({"key": "event_id"}, r"key was \['item'\] and is \['event_id'\]"),
        ({"late": "correct"}, "late was keep and is correct; lateness was None and is 3600.0"),
    ],
)
def test_state_of_another_section_is_refused(tmp_path: Path, process_: dict[str, Any], said: str) -> None:
    out = two_batches(tmp_path)
    out.write(args={"window": "1m", "min_count": 2})  # state does not depend on it
    out.drain()
    out.write(**process_)
    with pytest.raises(LakeError, match=f"another section `process`.*{said}") as error:
        out.drain()
    assert "--rebuild" in error.value.remedy


def test_state_with_other_columns_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = two_batches(tmp_path)
    monkeypatch.setattr(TumblingCounts, "state", pa.schema([("open", pa.binary()), ("more", pa.int64())]))
    with pytest.raises(LakeError, match=r"holds open, ended, and the processor's state is open, more"):
        out.drain()


def test_a_processor_that_cannot_correct_is_refused(tmp_path: Path) -> None:
    out = Output(tmp_path, {"processor": f"{__name__}:Runs", "args": {}, "late": "correct"})
    with pytest.raises(ConfigError, match=r"Runs cannot take late events.*late: keep"):
        out.drain()


def test_keys_of_several_parts_and_inside_records(tmp_path: Path) -> None:
    out = Output(tmp_path, {"key": ["item", "record.id"]})
    out.publish([("a", 'sh"o', NOON), ("b", "hats", NOON)], NOON + MINUTE)
    out.drain()
    assert [row["key"] for row in out.rows("signals")] == ['["hats","b"]', '["sh\\"o","a"]']
    out.write(key="no_such")
    with pytest.raises(LakeError, match=r"has no column no_such; it has .*item.*Name one of them in process\.key"):
        process(None, out.pipeline, "", lambda _: None, 0, rebuild=True)


def test_a_key_that_older_files_have_no_column_of(tmp_path: Path) -> None:
    """A column that is added later is null in older rows."""
    out = Output(tmp_path, {"key": ["item", "size"]})
    out.publish([("a", "shoes", NOON), ("b", "hats", NOON)], NOON)
    new = out.rows_of([("c", "hats", NOON + SECOND)]).append_column("size", pa.array([41], pa.int32()))
    write_deltalake(out.table(), new, mode="append", schema_mode="merge")
    out.publish([], NOON + MINUTE)
    out.drain()
    assert out.signals() == [('["hats","41"]', "count", NOON, 1)]
    assert [(row["event_id"], row["reason"]) for row in out.rows("late")] == [("a", "no-key"), ("b", "no-key")]
    assert check(out.pipeline).faults == ()


@pytest.mark.parametrize("key", [pa.array([b"\xff"]), pa.array([{"a": 1}]), pa.array([["a"]])])
def test_a_column_that_no_key_can_be_made_of_is_named(key: pa.Array) -> None:
    with pytest.raises(LakeError, match=r"column k .* is no key"):
        keys_of(pa.table({"k": key}), [("k",)])


def test_numbers_and_times_as_keys() -> None:
    numbers = pa.array([0.0, -0.0, 1.5, math.nan, None])
    assert keys_of(pa.table({"k": numbers}), [("k",)]).to_pylist() == ["0", "0", "1.5", "nan", None]
    times = pa.array([0, None], pa.timestamp("us", tz="UTC"))
    assert keys_of(pa.table({"k": times}), [("k",)]).to_pylist() == ["1970-01-01 00:00:00.000000Z", None]


class Runs(KeyedProcessor):
    """Every second event of a key, by a processor of our own."""

    state = pa.schema([("odd", pa.int64())])

    def one(self, seen: Seen) -> Said:
        odd, signals = int((seen.state or {"odd": 0})["odd"]), []
        for at in seen.times:
            odd = 1 - odd
            if not odd:
                signals.append({"kind": "second", "window_start": at, "window_end": at, "count": 2})
        return Said({"odd": odd} if odd else None, signals=signals)


def test_a_processor_of_ones_own_key_by_key(tmp_path: Path) -> None:
    out = two_batches(tmp_path, processor=f"{__name__}:Runs", args={})
    out.drain()
    assert by_text(out.signals()) == by_text(
        [("shoes", "second", NOON + SECOND, 2), ("hats", "second", NOON + 70 * SECOND, 2)]
    )
    assert out.drain() == []
