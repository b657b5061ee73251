"""Which of the primary events with an event's key is picked, compared with the rules read aloud."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from clickjoin.kernel import data_skipping, parquet_rows
from clickjoin.kernel import touches as kernel
from clickjoin.kernel.data_skipping import Ends
from clickjoin.kernel.forgotten import EMPTIED, NO_ID
from clickjoin.kernel.parquet_rows import Files
from clickjoin.kernel.touches import pick, picked_of, windows_of, without_copies
from clickjoin.kernel.waiting import Tries
from clickjoin.model.ids import COPIES_WITHIN, Around, moment
from clickjoin.schemas import PRIMARY
from tests.unit.resolving_bench import BUCKET, files
from tests.unit.resolving_bench import rows as rows_of

BACK, AHEAD = 5, 1  # microseconds
_TIME = pa.timestamp("us", "UTC")
_ROW = st.tuples(st.sampled_from(["a", "b", "ü"]), st.integers(0, 12), st.sampled_from("xyzé"))
TOUCHES = st.lists(_ROW, max_size=20)
EVENTS = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c", ""]), st.integers(0, 20), st.sampled_from("xn")), max_size=9
)


def table(rows: list[tuple[str, int, str]], key: str, preferred: list[bool | None] | None = None) -> pa.Table:
    columns: dict[str, Any] = {
        "event_id": pa.array([name for _, _, name in rows], pa.string()),
        "event_time": pa.array([moment(at) for _, at, _ in rows], _TIME),
        key: pa.array([key for key, _, _ in rows], pa.string()),
        "preferred": pa.array(preferred or [None] * len(rows), pa.bool_()),
    }
    return pa.table(columns)


def expected(events: list[tuple[str, int, str]], touches: list[tuple[str, int, str]], which: str) -> list[Any]:
    first = {(key, name): min(at for k, at, n in touches if (k, n) == (key, name)) for key, _, name in touches}
    answers = []
    for key, at, own in events:
        fits = [
            (when, name.encode(), name)
            for (k, name), when in first.items()
            if k == key and name != own and -AHEAD <= at - when <= BACK
        ]
        answers.append((max if which == "last" else min)(fits)[2] if fits else None)
    return answers


@given(TOUCHES, EVENTS, st.sampled_from(["last", "first"]))
def test_the_rules(touches: list[Any], events: list[Any], which: str) -> None:
    around = Around(BACK, AHEAD, which)
    at, found = picked_of(table(events, "primary_id"), table(touches, "match_key"), around)
    got: list[Any] = [None] * len(events)
    for place, name in zip(at.tolist(), found["event_id"].to_pylist(), strict=True):
        got[place] = name
    assert got == expected(events, touches, which)


@given(st.lists(st.tuples(_ROW, st.booleans()), max_size=20), EVENTS, st.sampled_from(["last", "first"]))
def test_those_preferred_go_before_all_others(drawn: list[Any], events: list[Any], which: str) -> None:
    touches, liked = [row for row, _ in drawn], [each for _, each in drawn]
    around = Around(BACK, AHEAD, which, prefer=True)
    at, found = picked_of(table(events, "primary_id"), table(touches, "match_key", liked), around)
    got: list[Any] = [None] * len(events)
    for place, name in zip(at.tolist(), found["event_id"].to_pylist(), strict=True):
        got[place] = name
    first = {(key, name): min(at for k, at, n in touches if (k, n) == (key, name)) for key, _, name in touches}
    chosen = {(key, name) for (key, at, name), each in drawn if each and first[key, name] == at}
    one, other = (
        expected(events, [row for row in touches if ((row[0], row[2]) in chosen) is inside], which)
        for inside in (True, False)
    )
    assert got == [mine or theirs for mine, theirs in zip(one, other, strict=True)]


@given(TOUCHES, EVENTS, st.integers(2, 4), st.sampled_from([COPIES_WITHIN, 2]))
def test_all_of_a_window(touches: list[Any], events: list[Any], limit: int, copies: int) -> None:
    """Of more than the limit the first and the newest; positions and counts are of the whole window."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "COPIES_WITHIN", copies)
        each = without_copies(table(touches, "match_key"))
    found = windows_of(table(events, "primary_id"), each, Around(BACK, AHEAD, "all", limit=limit))
    rows = list(zip(each["event_id"].to_pylist(), each["event_time"].to_pylist(), strict=True))
    got: dict[int, Any] = {at: (count, []) for at, count in zip(found.at.tolist(), found.counts.tolist(), strict=True)}
    for of, position, one in zip(found.of.tolist(), found.position.tolist(), found.touch.tolist(), strict=True):
        got[found.at[of]][1].append((position, *rows[one]))
    assert got == of_all(events, touches, limit, copies)


def of_all(events: list[Any], touches: list[Any], limit: int, copies: int) -> dict[int, Any]:
    """The rules, read aloud; a record up to `copies` after another of its id and key is a copy."""
    once = {
        (key, at, name)
        for key, at, name in touches
        if not any((key, name) == (k, n) and at - copies <= other < at for k, other, n in touches)
    }
    answers = {}
    for place, (key, at, own) in enumerate(events):
        fits = sorted(
            (when, name) for k, when, name in once if k == key and name != own and -AHEAD <= at - when <= BACK
        )
        whole = [(number, name, moment(when)) for number, (when, name) in enumerate(fits, 1)]
        if whole:
            answers[place] = (len(whole), whole if len(whole) <= limit else [whole[0], *whole[1 - limit :]])
    return answers


def test_records_of_one_id_that_lie_far_apart_are_two() -> None:
    apart = [("a", 0, "t"), ("a", COPIES_WITHIN, "t"), ("a", 2 * COPIES_WITHIN + 1, "t")]
    events = table([("a", at, "o") for _, at, _ in apart], "primary_id")
    at, found = picked_of(events, table(apart, "match_key"), Around(0, 0, "last"))
    assert at.tolist() == [0, 2], "the second is a copy of the first; the third is none"
    assert found["event_time"].to_pylist() == [moment(0), moment(2 * COPIES_WITHIN + 1)]


def primary(folder: Path, *rows: tuple[str, int, str | None, str]) -> Any:
    given_ = [
        {"event_id": name, "event_time": moment(at), "bucket": BUCKET, "match_key": key, "payload": payload}
        for name, at, key, payload in rows
    ]
    return files(folder, PRIMARY, given_)


def picked(folder: Path, *rows: tuple[str, int, str | None, str], floor: int | None = None) -> list[tuple[str, str]]:
    events = table([("u", 90, "o"), (NO_ID, 90, "keyless")], "primary_id")
    at, found = pick(events, primary(folder, *rows), Around(50, 0, "last"), floor)
    assert at.tolist() == [0] * found.num_rows
    return list(zip(found["event_id"].to_pylist(), found["payload"].to_pylist(), strict=True))


def test_of_two_records_of_one_time_the_least_digest_counts(tmp_path: Path) -> None:
    """Whichever landed first: two replicas, or two engines, give the same row."""
    rows = [("t", 80, "u", text) for text in ("one", "two", "three")]
    found = {tuple(picked(tmp_path / str(n), *rows[n:], *rows[:n])) for n in range(3)}
    assert found == {(("t", "two"),)}


def test_one_that_was_forgotten_is_none(tmp_path: Path) -> None:
    """Also where another copy holds its record still; then the one before it counts."""
    rows = [("t1", 70, "u", "one"), ("t2", 80, "u", "two"), ("t2", 80, None, EMPTIED), ("t", 85, None, EMPTIED)]
    assert picked(tmp_path, *rows) == [("t1", "one")]


def test_all_with_their_records(tmp_path: Path) -> None:
    """One that was forgotten is none, and the first copy that is left counts; of one time the least digest."""
    rows = [
        ("t1", 70, "u", "one"), ("t1", 75, "u", "two"), ("t1", 70, None, EMPTIED), ("t2", 80, "u", "one"),
        ("t2", 80, "u", "two"), ("t3", 81, "u", "three"), ("t0", 30, "u", "before"), ("t4", 85, "v", "other"),
    ]  # fmt: skip
    events = table([("u", 90, "o"), (NO_ID, 90, "keyless"), ("v", 95, "p"), ("w", 90, "none")], "primary_id")
    at, found = pick(events, primary(tmp_path, *rows), Around(50, 0, "all", limit=2), None)
    assert at.tolist() == [0, 2]
    assert found["touch_count"].to_pylist() == [3, 1]
    last = [found[name].to_pylist() for name in ("event_id", "payload")]
    assert last == [["t3", "t4"], ["three", "other"]]
    kept = [[(one["position"], one["event_id"], one["payload"]) for one in row] for row in found["touches"].to_pylist()]
    assert kept == [[(1, "t1", "two"), (3, "t3", "three")], [(1, "t4", "other")]]


def sorted_by_key(folder: Path, rows: list[tuple[str, int, str | None, str]], size: int) -> Files:
    """One file as compaction leaves it: by key (rows without one first), in row groups of some rows."""
    given_ = [
        {"event_id": name, "event_time": moment(at), "bucket": BUCKET, "match_key": key, "payload": payload}
        for name, at, key, payload in sorted(rows, key=lambda row: row[2] or "")
    ]
    folder.mkdir()
    pq.write_table(rows_of(PRIMARY, given_), folder / "f.parquet", row_group_size=size)
    return Files(str(folder), ("f.parquet",), Ends(np.array([0], np.int64), np.array([1000], np.int64)))


@given(TOUCHES.filter(bool), EVENTS.filter(bool), st.sampled_from(["last", "first"]), st.integers(1, 5), st.data())
def test_row_groups_without_a_wanted_key_are_passed_over(
    touches: list[Any], events: list[Any], which: str, size: int, data: st.DataObject
) -> None:
    """Which is picked does not hang on it, also where records were forgotten, and have no key any more."""
    forgotten = data.draw(st.sets(st.sampled_from([(name, at) for _, at, name in touches]), max_size=2))
    rows: list[Any] = [(name, at, key, f"{name}{at}") for key, at, name in touches]
    rows += [(name, at, None, EMPTIED) for name, at in sorted(forgotten)]
    wanted, around = table(events, "primary_id"), Around(BACK, AHEAD, which)
    with TemporaryDirectory() as folder:
        small = pick(wanted, sorted_by_key(Path(folder) / "a", rows, size), around, None)
        whole = pick(wanted, sorted_by_key(Path(folder) / "b", rows, 1000), around, None)
    assert small[0].tolist() == whole[0].tolist()
    assert small[1].equals(whole[1])


@example([("a", 5, "x"), ("a", 4, "x")], [("a", 6, "n")], "last", 0, set(), None)
@example([("a", 5, "x"), ("a", 4, "x")], [("a", 6, "n")], "last", 2, set(), None)
@example([("a", 5, "x"), ("a", 4, "x")], [("a", 10, "n")], "first", 0, set(), None)
@example([("a", 5, "x"), ("a", 3, "y")], [("a", 6, "n")], "last", 0, {0}, None)
@given(
    TOUCHES.filter(bool), EVENTS.filter(bool), st.sampled_from(["last", "first"]), st.integers(0, 4),
    st.sets(st.integers(0, 19), max_size=2), st.none() | st.integers(0, 12),
)  # fmt: skip
def test_a_part_of_the_window_is_enough(
    touches: list[Any], events: list[Any], which: str, first: int, forgotten: set[int], floor: int | None
) -> None:
    """Which is picked does not hang on how much is read at once; copies are of 2 microseconds here."""
    rows: list[Any] = [(name, at, key, f"{name}{at}") for key, at, name in touches]
    rows += [(*rows[number][:2], None, EMPTIED) for number in sorted(forgotten) if number < len(touches)]
    wanted, around = table(events, "primary_id"), Around(BACK, AHEAD, which)
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "COPIES_WITHIN", 2)
        patch.setattr(data_skipping, "_SLACK", 0)
        files_ = sorted_by_time(Path(folder) / "a", rows)
        found = []
        for widths in ([*range(first, BACK + AHEAD, 2), BACK + AHEAD], [BACK + AHEAD]):
            patch.setattr(kernel, "_widths", lambda _, widths=widths: widths)
            found.append(pick(wanted, files_, around, floor))
    assert found[0][0].tolist() == found[1][0].tolist()
    assert found[0][1].equals(found[1][1])


def sorted_by_time(folder: Path, rows: list[tuple[str, int, str | None, str]]) -> Files:
    """A file a moment, so that nothing is read beside what is asked for."""
    folder.mkdir()
    moments = sorted({at for _, at, _, _ in rows})
    for moment_ in moments:
        given_ = [
            {"event_id": name, "event_time": moment(at), "bucket": BUCKET, "match_key": key, "payload": payload}
            for name, at, key, payload in rows
            if at == moment_
        ]
        pq.write_table(rows_of(PRIMARY, given_), folder / f"{moment_}")
    times = np.array(moments, np.int64)
    return Files(str(folder), tuple(map(str, moments)), Ends(times, times))


@pytest.mark.parametrize("which", ["last", "first"])
def test_of_a_week_little_is_read(which: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a user who has touches in it; and all of it for one who has none."""
    hour, read = COPIES_WITHIN, set()
    rows: list[Any] = [(f"t{n}", n * hour, "u", f"{n}") for n in range(1, 169)] + [("other", 100 * hour, "v", "v")]
    held = sorted_by_time(tmp_path / "a", rows)
    plain = parquet_rows.open_file
    monkeypatch.setattr(parquet_rows, "open_file", lambda root, file: read.add(int(file) // hour) or plain(root, file))
    around = Around(168 * hour, 0, which)
    assert pick(table([("u", 168 * hour, "o")], "primary_id"), held, around, None)[1].num_rows == 1
    assert read <= ({165, 166, 167, 168} if which == "last" else {1, 2, 3, 4})
    assert pick(table([("v", 168 * hour, "o")], "primary_id"), held, around, None)[1]["payload"].to_pylist() == ["v"]


def test_few_row_groups_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[Any] = [(f"t{n:03}", n % 50, f"u{n // 8:02}", f"record {n}") for n in range(800)]
    held, read = sorted_by_key(tmp_path / "a", rows, 8), []
    plain = parquet_rows.groups_of

    def counted(file: Any, groups: Any, names: list[str]) -> pa.Table:
        read.extend(groups)
        return plain(file, groups, names)

    monkeypatch.setattr(parquet_rows, "groups_of", counted)
    at, found = pick(table([("u07", 60, "o"), ("u70", 60, "p")], "primary_id"), held, Around(60, 0, "last"), None)
    assert at.tolist() == [0, 1]
    assert found["match_key"].to_pylist() == ["u07", "u70"]
    assert set(read) <= {6, 7, 8, 69, 70, 71}, "those of the two keys, and their neighbours"


def test_a_group_whose_ends_are_missing_or_contradict_each_other_is_read() -> None:
    class Group:
        def __init__(self, ends: tuple[str, str] | None, nulls: int) -> None:
            self.has_min_max, self.has_null_count, self.null_count = ends is not None, True, nulls
            self.min, self.max = ends or ("", "")

    class Metadata:
        def __init__(self, *groups: Group) -> None:
            self.groups, self.num_row_groups, self.num_columns = groups, len(groups), 1
            self.schema = SimpleNamespace(column=lambda _: SimpleNamespace(path="match_key"))

        def row_group(self, number: int) -> Any:
            return SimpleNamespace(column=lambda _: SimpleNamespace(statistics=self.groups[number]))

    known = Metadata(*(Group(ends, nulls) for ends, nulls in [
        (("a", "c"), 0), (("d", "f"), 0), (("g", "i"), 0), (("k", "j"), 0), (("m", "o"), 0), (("p", "r"), 0),
        (("s", "u"), 1), (("v", "w"), 0), (("x", "x"), 0), (("y", "z"), 0),
    ]))  # fmt: skip
    can_hold = parquet_rows._can_hold(known, np.arange(10), ["e"])
    assert can_hold.tolist() == [False, True, True, True, True, False, True, False, False, False]


def test_one_from_before_the_floor_is_none(tmp_path: Path) -> None:
    rows = [("t1", 70, "u", "one"), ("t2", 80, "v", "two")]
    assert picked(tmp_path / "a", *rows, floor=70) == [("t1", "one")]
    assert picked(tmp_path / "b", *rows, floor=71) == []


def test_a_record_without_a_key_matches_nothing(tmp_path: Path) -> None:
    assert picked(tmp_path, ("t", 80, NO_ID, "one")) == []


@pytest.mark.parametrize(("passed", "over"), [(None, [False, True]), (100, [False, True]), (101, [True, True])])
def test_an_event_is_decided_once_the_stream_has_passed_it(passed: int | None, over: list[bool]) -> None:
    rows = table([("u", 100, "o"), (NO_ID, 200, "keyless")], "primary_id")
    none = pa.nulls(2, _TIME)
    rows = rows.append_column("primary_time", none).append_column("attempt", pa.array([0, 0], pa.int32()))
    tries = Tries(0, 1, 1, 1, passed=passed, decides=True)
    assert tries.over(rows).tolist() == over
    assert not Tries(0, 1, 1, 1).over(rows).any()
    assert isinstance(tries.over(rows), np.ndarray)
