"""A date that is rebuilt has today's answers and all else as it was; what happens beside it is kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime
from functools import partial
from typing import Any

import pytest

from clickjoin.dates.backfill import outline
from clickjoin.dates.closing import Order
from clickjoin.dates.rebuild import rebuild
from clickjoin.engines.arrow import dealing
from clickjoin.engines.arrow import rebuilding as rebuilds
from clickjoin.engines.spark import rebuilding as of_spark
from clickjoin.lake import committer
from clickjoin.lake.table_features import FeatureRefused
from clickjoin.model.errors import CommitConflict, LakeError
from clickjoin.model.places import is_on_s3
from clickjoin.model.span import Day, Span
from tests.sampled import crossed, in_full
from tests.spark.bench import NOON, Bench, click, query
from tests.spark.hand import Hand, found, verify

Make = Callable[..., Bench]
HOUR = 3600
DAY = Day(date(2026, 3, 1))
PART = Span(*(datetime.fromtimestamp(NOON + at, UTC) for at in (90, 2 * HOUR + 30)))
ADAPTER = "tests.spark.adapters_for_dates"
Q, R = query("q"), query("r", HOUR)


def clicked(n: int, **more: Any) -> dict[str, Any]:
    """A click every minute for three hours: one of two on each query, which lies before it."""
    return click(f"c{n:03}", 30 + 60 * n, R if n % 2 and n > 60 else Q, n=n, **more)


@pytest.fixture
def by_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several tasks, of several parts each."""
    for module, name, value in ((rebuilds, "_ROWS_A_TASK", 60), (rebuilds, "_ROWS_A_PART", 25)):
        monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(dealing, "_ROWS_HERE", 0)


def joined(make: Make, **fields: Any) -> Bench:
    """180 clicks in three buckets, by several batches; both queries came twice."""
    made = make(**fields)
    made.clock.now = NOON + 4 * HOUR
    made.queries(Q, R)
    for begin in (0, 60, 119):
        made.queries({**Q, "again": begin}, {**R, "again": begin})
        made.clicks(*(clicked(n) for n in range(begin, min(begin + 61, 180))))  # the last of each comes again
        made.join()
    return made


def adapted(bench: Bench, name: str) -> None:
    bench.file.write_text(f"{bench.file.read_text()}adapter: {ADAPTER}:{name}\n")
    bench.reload()


def output(bench: Bench) -> list[dict[str, Any]]:
    """Every row of the output, with every column that it has."""
    table = bench.engine.lake.delta.read("joined")
    return sorted(table.to_pylist(), key=lambda row: (row["event_id"], row["event_time"]))


@pytest.mark.usefixtures("by_tasks")
@pytest.mark.parametrize(
    ("partition", "primary_time"), crossed(["event_date", "bucket"], ["embedded", {"lookback": "3h"}])
)
def test_rows_are_made_again(make: Make, partition: str, primary_time: Any) -> None:
    """Of a range whose files hold rows of others too: these stay, with what an earlier adapter has made of them."""
    bench = joined(make, output={"partition": [partition]}, foreign={"primary_time": primary_time})
    before = {row["event_id"]: row for row in output(bench)}
    adapted(bench, "Shown")
    files = bench.engine.lake.delta.files("joined").num_rows
    assert rebuild(bench.engine, PART, 1) == {"rebuilt": 119}
    made = output(bench)
    inside = [row for row in made if PART.low <= row["event_time"] < PART.high]
    assert (len(inside), len(made)) == (119, 180)
    for row in made:
        old = before[row["event_id"]]
        again = row in inside
        kept = set(old) - ({"foreign_record", "primary_record"} if again else set())
        assert {name: row[name] for name in kept} == {name: old[name] for name in kept}
        shown = f"{old['foreign_record']}|{old['primary_record']}|{int(old['primary_time'].timestamp() * 1e6)}"
        assert (row["shown"], row["foreign_record"]) == ((shown, None) if again else (None, old["foreign_record"]))
    assert bench.engine.lake.delta.files("joined").num_rows != files
    assert found(verify(bench)) == {}


def test_its_commit_is_an_update_to_every_reader(make: Make) -> None:
    """Files that go and files that come change data, with partitions and times; Spark reads what it says."""
    bench = joined(make)
    adapted(bench, "Shown")
    delta = bench.engine.lake.delta
    old, version = set(delta.files("joined")["path"].to_pylist()), delta.version("joined")
    rebuild(bench.engine, DAY.span, 1)
    place = bench.disk / "joined/_delta_log"
    assert delta.version("joined") == version + 1
    actions = [json.loads(line) for line in (place / f"{version + 1:020}.json").read_text().splitlines()]
    removed, added = ([one[kind] for one in actions if kind in one] for kind in ("remove", "add"))
    assert {one["path"] for one in removed} == old
    assert all(one["dataChange"] for one in (*removed, *added))
    assert {one["partitionValues"]["event_date"] for one in removed} == {
        one["partitionValues"]["event_date"] for one in added
    }
    assert len(added) == 1
    assert not actions[0]["commitInfo"].get("isBlindAppend", False)
    assert bench.spark.read.format("delta").load(delta.path("joined")).where("shown IS NOT NULL").count() == 180


def test_of_one_stream(make: Make) -> None:
    stream = {"source": {"kind": "files", "path": "foreign/*"}, "event_id": "event_id", "event_time": "embedded"}
    bench: Bench = make(stream=stream, first=[click("a", 2, Q), click("b", 3, Q), click("b", 3, Q)])
    bench.join()
    adapted(bench, "Shown")
    assert rebuild(bench.engine, DAY.span, 1) == {"rebuilt": 2}
    assert [json.loads(row["shown"].removesuffix("||"))["event_id"][0] for row in output(bench)] == ["a", "b"]


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("foreign", "there are 1 whose own record was collected"),
        ("primary", "there are 1 whose primary event was collected"),
        ("adapter", "there are 1 that today's adapter leaves out"),
        ("doubled", "of 3 ids in the output there are 1 that are there once more"),
    ],
)
def test_a_date_that_lacks_something_is_refused(make: Make, how: str, message: str) -> None:
    """With the same counts in a dry run; nothing has changed."""
    bench: Bench = make()
    bench.queries(Q, query("s", 1))
    bench.clicks(click("a", 2, Q, note="left out" if how == "adapter" else ""), click("b", 3, Q))
    bench.clicks(click("d", 4, query("s", 1)))
    bench.join()
    adapted(bench, "Few")
    hand = Hand(bench)
    if how == "doubled":
        hand.add("joined", hand.rows("joined", "a")[0])
    elif how != "adapter":
        hand.delete(how, {"foreign": "a", "primary": "s"}[how])
    before = bench.all_tables()
    seen = outline(bench.engine, DAY, Order("rebuild"))
    assert (seen["rebuilt"], seen["missing"]) == (3, {how: 1})
    with pytest.raises(LakeError, match=message):
        rebuild(bench.engine, DAY.span, 1)
    assert bench.all_tables() == before


def meanwhile(monkeypatch: pytest.MonkeyPatch, *acts: Callable[[], object]) -> None:
    """Have something done, at each time, after the rows were made and before they are committed."""
    left = list(acts)

    def then_act(made: Callable[..., Any], *args: Any, **more: Any) -> Any:
        done = made(*args, **more)
        if left:
            left.pop(0)()
        return done

    for engine in (rebuilds, of_spark):
        monkeypatch.setattr(engine, "rebuilt", partial(then_act, engine.rebuilt))


def test_what_others_do_meanwhile_is_kept(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are compacted, a row is removed, another changed, rows are added: none is lost, doubled or brought back."""
    bench = joined(make)
    adapted(bench, "Shown")
    hand, late = Hand(bench), [click(f"late{n}", 40 + n, Q) for n in range(2)]

    def add() -> None:
        bench.clicks(*late)
        bench.replica("main").join_once()

    acts = [
        lambda: hand.table("joined").optimize.compact(),
        lambda: hand.delete("joined", "c007"),
        lambda: hand.change("joined", "c008", replica="another"),
        add,
    ]
    meanwhile(monkeypatch, *acts)
    assert rebuild(bench.engine, DAY.span, 1) == {"rebuilt": 179}
    ids = [row["event_id"].split(":")[0] for row in output(bench)]
    assert ids == sorted({f"c{n:03}" for n in range(180)} - {"c007"} | {"late0", "late1"})
    assert [row["event_id"] for row in output(bench) if row["replica"] == "another"] == [clicked(8)["event_id"]]
    assert all("|" in row["shown"] for row in output(bench))  # the live join has today's adapter as well


def test_somebody_rewrites_the_files_all_the_time(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = joined(make)
    adapted(bench, "Shown")
    acts = [lambda n=n: Hand(bench).change("joined", "c008", replica=f"another{n}") for n in range(10)]
    meanwhile(monkeypatch, *acts)
    with pytest.raises(CommitConflict, match="were rewritten 10 times while rows of theirs were made again"):
        rebuild(bench.engine, DAY.span, 1)
    assert {row["shown"] for row in output(bench)} == {None}


def test_an_answer_that_was_lost(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commit is there, and its writer heard of an error: it finds its own files, and commits no second time."""
    bench = joined(make)
    if is_on_s3(bench.pipeline.root):
        pytest.skip("only a local disk is flushed")
    adapted(bench, "Shown")
    delta, errors = bench.engine.lake.delta, [OSError(5, "I/O error")]
    version, flush = delta.version("joined"), committer.flush_commit

    def failing(*args: Any) -> None:
        if errors:
            raise errors.pop()
        flush(*args)

    monkeypatch.setattr(committer._flush, "__defaults__", (failing,))
    assert rebuild(bench.engine, DAY.span, 1) == {"rebuilt": 180}
    assert (errors, delta.version("joined")) == ([], version + 1)
    assert all("|" in row["shown"] for row in output(bench))


@in_full
def test_a_table_that_only_spark_can_write(make: Make) -> None:
    bench = joined(make)
    adapted(bench, "Shown")
    path = bench.engine.lake.delta.path("joined")
    bench.spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')")
    before = output(bench)
    with pytest.raises(FeatureRefused, match="rowTracking"):
        rebuild(bench.engine, DAY.span, 1)
    assert output(bench) == before


@pytest.mark.usefixtures("by_tasks")
def test_rows_that_statistics_hide_are_not_lost(make: Make) -> None:
    """A file's statistics say that its rows are of another hour: it would go with them, so that nothing is done."""
    bench = joined(make)
    adapted(bench, "Shown")
    log = sorted((bench.disk / "joined/_delta_log").glob("*.json"))
    entry = next(file for file in log if "maxValues" in file.read_text())
    actions = [json.loads(line) for line in entry.read_text().splitlines()]
    for one in (action["add"] for action in actions if "add" in action):
        stats = json.loads(one["stats"])
        for end in ("minValues", "maxValues"):
            stats[end]["event_time"] = stats[end]["event_time"].replace("T12:", "T14:")
        one["stats"] = json.dumps(stats)
    entry.write_text("".join(f"{json.dumps(action)}\n" for action in actions))
    bench.reload()
    before = output(bench)
    with pytest.raises(LakeError, match=r"hold 180 rows, and .* were found there; nothing was changed"):
        rebuild(bench.engine, DAY.span, 1)
    assert output(bench) == before
