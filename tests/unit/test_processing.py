"""Per-key processing: each event is counted once and each signal reported once, whatever is killed or rewritten."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clickjoin.gc.processed import collect_processed
from clickjoin.jobs.processing import process
from clickjoin.model import failpoint
from clickjoin.model.errors import ConfigError, LakeError, LakeReplaced
from clickjoin.processing.check import check
from clickjoin.processors import KeyedProcessor, Said, Seen
from tests.unit.processing_bench import HOUR, MINUTE, NOON, SECOND, Event, Output

POINTS = failpoint.PROCESS_POINTS


class Killed(BaseException):
    """The process ends here."""


def killed_at(point: str, monkeypatch: pytest.MonkeyPatch, work: Callable[[], object]) -> bool:
    """Do some work in a process that ends at a point; whether it came there."""

    def reach(name: str) -> None:
        if name == point:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(failpoint, "reach", reach)
        try:
            work()
        except Killed:
            return True
    return False


def paused_at(
    point: str, monkeypatch: pytest.MonkeyPatch, work: Callable[[], object], meanwhile: Callable[[], object]
) -> None:
    """Do some work in a process that is paused at a point, while others go on."""
    paused = False

    def reach(name: str) -> None:
        nonlocal paused
        if name == point and not paused:
            paused = True
            meanwhile()

    with monkeypatch.context() as patch:
        patch.setattr(failpoint, "reach", reach)
        work()


def expected(events: Sequence[Event], watermark: int) -> list[tuple[Any, ...]]:
    """Counts of each key and minute that is over, by a counter of our own."""
    counts = Counter((key, time // MINUTE * MINUTE) for _, key, time in events if key is not None)
    return sorted(
        ((key, "count", start, count) for (key, start), count in counts.items() if start + MINUTE <= watermark),
        key=str,
    )


def by_text(rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(rows, key=str)


FIRST = [("a1", "shoes", NOON), ("a2", "shoes", NOON + SECOND), ("a3", "hats", NOON + 5 * SECOND)]
SECOND_BATCH = [("b1", "shoes", NOON + 40 * SECOND), ("b2", "hats", NOON + 70 * SECOND)]


def two_batches(folder: Path, **process_: Any) -> Output:
    out = Output(folder, process_)
    out.publish(FIRST, NOON)
    out.drain()
    out.publish(SECOND_BATCH, NOON + MINUTE)
    return out


def test_windows_are_counted_across_batches(tmp_path: Path) -> None:
    out = two_batches(tmp_path)
    out.drain()
    assert by_text(out.signals()) == expected([*FIRST, *SECOND_BATCH], NOON + MINUTE)
    out.publish([], NOON + 2 * MINUTE)  # only time passes
    (row,) = out.drain()
    assert (row["events"], row["signals"], row["keys"]) == (0, 1, 1)
    assert by_text(out.signals()) == expected([*FIRST, *SECOND_BATCH], NOON + 2 * MINUTE)
    assert out.drain() == []
    assert {row["id"] for row in out.rows("signals")} >= {"TumblingCounts/count/2024-10-04 12:00:00.000000/shoes"}


@pytest.mark.parametrize("point", POINTS)
def test_killed_at_a_step_and_again_on_replay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    out = two_batches(tmp_path)
    out.publish([("late", "shoes", NOON - HOUR)], NOON + 2 * MINUTE)
    for _ in range(3):
        killed_at(point, monkeypatch, out.processing().once)
    out.drain()
    assert by_text(out.signals()) == expected([*FIRST, *SECOND_BATCH], NOON + 2 * MINUTE)
    assert [row["event_id"] for row in out.rows("late")] == ["late"]
    assert sum(row["events"] + row["late"] for row in out.rows("processed")) == 6


@pytest.mark.parametrize("point", POINTS)
def test_a_zombie_does_nothing_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    out = two_batches(tmp_path)

    def meanwhile() -> None:
        out.drain()
        out.publish([("c1", "shoes", NOON + 100 * SECOND), ("late", "hats", NOON)], NOON + 2 * MINUTE)
        out.drain()

    late = [("late", "hats", NOON - HOUR)] if point == "process-late" else []
    out.add(late)
    zombie = out.processing()
    paused_at(point, monkeypatch, zombie.once, meanwhile)
    zombie.drain(lambda _: None)
    events = [*FIRST, *SECOND_BATCH, ("c1", "shoes", NOON + 100 * SECOND)]
    assert by_text(out.signals()) == expected(events, NOON + 2 * MINUTE)
    assert len(out.rows("late")) == 1 + len(late)
    assert [row["batch"] for row in out.rows("processed")] == [1, 2, 3]


@pytest.mark.parametrize("point", [point for point in POINTS if point != "process-late"])
def test_what_a_batch_has_fixed_is_published_whatever_the_file_says_by_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    """State is committed before anything is published: else what is out and what is remembered could differ."""
    out = two_batches(tmp_path)
    killed_at(point, monkeypatch, out.processing().once)
    fixed = point in POINTS[2:]
    out.write(args={"window": "1m", "min_count": 3})
    out.drain()
    three = [("shoes", "count", NOON, 3)]
    assert by_text(out.signals()) == (by_text([*three, ("hats", "count", NOON, 1)]) if fixed else three)
    said = [row["outbox"] is not None for row in out.rows("state") if row["what"] == "batch"]
    assert said[-1] is True


def test_events_behind_the_watermark_and_without_a_key_are_kept_whole(tmp_path: Path) -> None:
    out = two_batches(tmp_path)
    out.drain()
    out.publish([("x", "hats", NOON - SECOND), ("y", None, NOON + 90 * SECOND), ("z", "hats", NOON)], NOON + MINUTE)
    (row,) = out.drain()
    assert (row["events"], row["late"]) == (0, 3)
    found = [(row["event_id"], row["key"], row["reason"]) for row in out.rows("late")]
    assert found == [("x", "hats", "late"), ("y", None, "no-key"), ("z", "hats", "late")]
    assert check(out.pipeline).faults == ()


def test_rows_that_are_rewritten_are_no_new_events(tmp_path: Path) -> None:
    out = two_batches(tmp_path)
    out.drain()
    out.table().update(updates={"item": "'shoes'"}, predicate="event_id = 'a3'")
    out.table().optimize.compact()
    out.table().delete("event_id = 'a1'")
    out.publish([("c1", "shoes", NOON + 100 * SECOND)], NOON + 2 * MINUTE)
    rows = out.drain()
    assert sum(row["events"] for row in rows) == 1
    assert sum(row["known"] for row in rows) > 0
    events = [*FIRST, *SECOND_BATCH, ("c1", "shoes", NOON + 100 * SECOND)]
    assert by_text(out.signals()) == expected(events, NOON + 2 * MINUTE)


def test_an_output_that_was_put_back_is_refused_and_a_rebuild_says_the_same(tmp_path: Path) -> None:
    out = two_batches(tmp_path)
    out.drain()
    before = out.signals()
    folder, copy = Path(out.table().table_uri.removeprefix("file://")), tmp_path / "copy"
    shutil.copytree(folder, copy)
    out.add([("d1", "hats", NOON + 3 * MINUTE)])
    out.drain()
    shutil.rmtree(folder)
    copy.rename(folder)
    out.add([("e1", "hats", NOON + 4 * MINUTE)])
    with pytest.raises(LakeError, match=r"not what lies there now.*process --rebuild"):
        out.drain()
    said: list[str] = []
    process(None, out.pipeline, "", said.append, rebuild=True)
    assert out.signals() == before
    assert len([line for line in said if "put-aside" in line]) == 5


def test_a_process_from_before_a_rebuild_commits_no_more(tmp_path: Path) -> None:
    out = two_batches(tmp_path)
    old = out.processing()
    old.once()
    process(None, out.pipeline, "", lambda _: None, rebuild=True)
    out.publish([("c1", "shoes", NOON + 100 * SECOND)], NOON + 2 * MINUTE)
    with pytest.raises(LakeReplaced):
        old.once()
    out.drain()
    assert by_text(out.signals()) == expected(
        [*FIRST, *SECOND_BATCH, ("c1", "shoes", NOON + 100 * SECOND)], NOON + 2 * MINUTE
    )


@pytest.mark.parametrize("name", ["journal", "state", "signals"])
def test_an_older_or_lost_table_is_refused(tmp_path: Path, name: str) -> None:
    out = two_batches(tmp_path)
    folder = tmp_path / f"lake/shop/process/{name}"
    shutil.copytree(folder, tmp_path / "copy")
    out.drain()
    shutil.rmtree(folder)
    with pytest.raises(LakeError, match=rf"table {name} is missing"):
        out.drain()
    (tmp_path / "copy").rename(folder)
    out.publish([("c1", "shoes", NOON + 100 * SECOND)], NOON + 2 * MINUTE)
    with pytest.raises(LakeError, match="older"):
        out.drain()


def test_all_keys_are_written_again_now_and_then_and_loaded_by_any_process(tmp_path: Path) -> None:
    out = Output(tmp_path)
    events: list[Event] = []
    for batch in range(6):
        new: list[Event] = [
            (f"{batch}-{key}", f"k{key}", NOON + batch * SECOND) for key in range(600) if (key + batch) % 3 or batch < 2
        ]
        events += new
        out.publish(new, NOON)
        out.drain()
    eras = {row["era"] for row in out.rows("state")}
    assert len(eras) == 1
    assert eras != {1}
    out.publish([], NOON + MINUTE)
    out.drain()
    assert by_text(out.signals()) == expected(events, NOON + MINUTE)
    assert out.drain() == []


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
    collect_processed(out.pipeline, datetime.now(UTC), said.append)
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
    with pytest.raises(LakeError, match="holds no tables"):
        process(None, out.pipeline, "", lambda _: None, 0)
    assert not (tmp_path / "lake").exists()


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


def test_another_processor_on_the_same_state_is_refused(tmp_path: Path) -> None:
    out = two_batches(tmp_path)
    out.write(processor="clickjoin.processors:SpikesAndDips", args={})
    with pytest.raises(LakeError, match=r"another processor wrote it.*--rebuild"):
        out.drain()


def test_keys_of_several_parts_and_inside_records(tmp_path: Path) -> None:
    out = Output(tmp_path, {"key": ["item", "record.id"]})
    out.publish([("a", 'sh"o', NOON), ("b", "hats", NOON)], NOON + MINUTE)
    out.drain()
    assert [row["key"] for row in out.rows("signals")] == ['["hats","b"]', '["sh\\"o","a"]']
    out.write(key="no_such")
    out.publish([("c", "hats", NOON + HOUR)], NOON + HOUR)
    with pytest.raises(LakeError, match="has no column no_such"):
        out.drain()


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


EVENTS = st.lists(st.tuples(st.sampled_from(["a", "b", "c"]), st.integers(0, 300)), max_size=8)


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(EVENTS, st.integers(0, 150), st.sampled_from(("", *POINTS))), min_size=1, max_size=5))
def test_it_equals_a_count_by_hand_whatever_is_killed(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, batches: list[Any]
) -> None:
    out, mark, taken, late = Output(tmp_path_factory.mktemp("lake")), NOON, list[Event](), 0
    for nth, (events, step, point) in enumerate(batches):
        new = [(f"{nth}-{at}", key, NOON + second * SECOND) for at, (key, second) in enumerate(events)]
        taken += [event for event in new if event[2] >= mark]
        late += sum(event[2] < mark for event in new)
        mark += step * SECOND
        out.publish(new, mark)
        if not (point and killed_at(point, monkeypatch, out.processing().once)):
            out.drain()
        out.drain()
    assert by_text(out.signals()) == expected(taken, mark)
    assert len(out.rows("late")) == late
    found = check(out.pipeline)
    assert (found.events, found.late, found.faults, found.notes) == (len(taken), late, (), ())
