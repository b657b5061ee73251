"""The output by date: each way into it fills event_date in, and a reader who asks for a date opens no other's files."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow.dataset as ds
import pytest
from deltalake import DeltaTable

from clickjoin.backup.restore import restore
from clickjoin.backup.take import take
from clickjoin.dates.late_events import join_expired
from clickjoin.dates.rebuild import rebuild
from clickjoin.gc.compaction import maintain
from clickjoin.jobs.upkeep import rebuild as rebuild_registry
from clickjoin.model.ids import MICROS
from clickjoin.model.span import Day
from clickjoin.registry.boundary import advance
from clickjoin.report import by_date
from tests.sampled import in_full, some
from tests.spark.bench import NOON, Bench, click, query
from tests.spark.hand import Hand, verify

MIDNIGHT, DAYS, HOUR = 43200, 100, 3600
TODAY = date(2026, 3, 1)
TOMORROW = date(2026, 3, 2)
COLUMN = {"columns": {"n": {"from": "foreign.n", "type": "BIGINT"}}}


def dates(bench: Bench) -> list[tuple[str, date | None]]:
    """Host and event_date of each row; a date that is not its time's fails."""
    rows = DeltaTable(f"{bench.pipeline.root}/joined").to_pyarrow_table().to_pylist()
    for row in rows:
        assert row.get("event_date", row["event_time"].date()) == row["event_time"].date(), row
    return sorted((row["event_id"].split(":")[0], row.get("event_date")) for row in rows)


def through_everything(bench: Bench) -> None:
    """Clicks about midnight, by each way into the output; k is the kernel's, s Spark's at once, and so on."""
    before, after = query("before", MIDNIGHT - 60), query("after", MIDNIGHT + 60)
    late, never = query("late", MIDNIGHT - 30), query("given-up", MIDNIGHT - 20)
    bench.clock.now = NOON + MIDNIGHT + HOUR
    bench.queries(before, after)
    bench.clicks(click("k1", MIDNIGHT - 1, before, n=1), click("k2", MIDNIGHT + 61, after, n=2))
    bench.clicks(click("r", MIDNIGHT + 1, late, n=3), click("g", MIDNIGHT - 2, never, n=4))
    bench.join()
    for _ in range(2):
        bench.retry(after=4000)
    assert bench.places()["unjoinable"] == ["g", "r"]
    bench.queries(late, never)
    bench.join()
    assert bench.engine.redrive() == 2
    assert bench.retry(after=1)["joined"] == 2
    bench.clicks(click("x", MIDNIGHT - 3, before, n=5))
    advance(bench.engine.lake.delta, 4, datetime.fromtimestamp(NOON + MIDNIGHT, UTC), datetime.now(UTC))
    assert bench.join() == {"events_in": 1, "expired": 1}
    assert join_expired(bench.engine, Day(TODAY).span, int(bench.clock.now * MICROS))["late"] == 1


WANTED = [("g", TODAY), ("k1", TODAY), ("k2", TOMORROW), ("r", TOMORROW), ("x", TODAY)]


@pytest.mark.parametrize(("partition", "by"), some([("event_date", "16MB"), ("bucket", "0B")], 2))
@in_full
def test_every_way_into_the_output(make: Callable[..., Bench], partition: str, by: str) -> None:
    """By Spark (0B), and by the driver."""
    bench = make(output={"partition": partition} | COLUMN, batch={"driver_bytes": by})
    through_everything(bench)
    assert dates(bench) == WANTED
    assert by_date.count(bench.engine.lake.delta, "joined") == {str(TODAY): 3, str(TOMORROW): 2}
    for day in (TODAY, TOMORROW):
        rebuild(bench.engine, Day(day).span, int(bench.clock.now * MICROS))
    assert dates(bench) == WANTED
    Hand(bench).delete("joined", "r")
    assert verify(bench, repair=True).ok
    bench.engine = bench.replica("main")
    bench.retry(after=1)
    assert dates(bench) == WANTED
    take(bench.pipeline, bench.folder / "backups", print, wait=5)
    restore(bench.pipeline, bench.folder / "backups", "", print, force=True)
    rebuild_registry(bench.spark, bench.pipeline, "", print, what="registry", replace=True)
    bench.reload()
    bench.clicks(click("z", MIDNIGHT + 200, query("after", MIDNIGHT + 60), n=6))
    assert bench.join()["joined"] == 1
    assert dates(bench) == [*WANTED, ("z", TOMORROW)]
    layout = DeltaTable(f"{bench.pipeline.root}/joined").metadata()
    assert layout.partition_columns == [partition]
    now = datetime.fromtimestamp(NOON + 3 * 86400, UTC)
    maintain(bench.pipeline, bench.engine.lake, now, print, crowd=2)
    assert dates(bench) == [*WANTED, ("z", TOMORROW)]
    assert verify(bench).ok


@pytest.fixture(scope="module", params=["bucket", "event_date"])
def long(request: Any, make: Callable[..., Bench]) -> Bench:
    """Two clicks of each of 100 dates: one by the kernel's batch, one retried and written by Spark."""
    bench: Bench = make(
        output={"partition": request.param} | COLUMN, batch={"driver_bytes": "0B"}, registry={"retention": "200d"}
    )
    asked = [query(f"q{n}", -86400 * n) for n in range(DAYS)]
    late = [query(f"l{n}", -86400 * n - HOUR) for n in range(DAYS)]
    bench.queries(*asked)
    bench.clicks(*(click(f"a{n}", 1 - 86400 * n, asked[n], n=n) for n in range(DAYS)))
    bench.clicks(*(click(f"b{n}", 1 - 86400 * n - HOUR, late[n], n=-n) for n in range(DAYS)))
    bench.join()
    bench.queries(*late)
    bench.join()
    bench.retry(after=60)
    assert bench.engine.lake.delta.rows("joined") == 2 * DAYS
    return bench


def of_date(bench: Bench, day: date) -> set[str]:
    """Names of the files that hold rows of a date: by the rows in them."""
    root = bench.disk / "joined"
    paths = [unquote(path) for path in bench.engine.lake.delta.files("joined")["path"].to_pylist()]
    times = {path: ds.dataset(root / path).to_table(columns=["event_time"])["event_time"].to_pylist() for path in paths}
    return {Path(path).name for path, held in times.items() if any(time.date() == day for time in held)}


@pytest.mark.parametrize("back", some([41, 0, DAYS - 1], 3))
def test_a_reader_opens_the_files_of_the_date_alone(long: Bench, back: int) -> None:
    day = TODAY - timedelta(days=back)
    wanted, all_files = of_date(long, day), long.engine.lake.delta.files("joined").num_rows
    assert 1 <= len(wanted) <= 2 < DAYS <= all_files
    rows = long.spark.read.format("delta").load(f"{long.pipeline.root}/joined").where(f"event_date = DATE '{day}'")
    assert {row["n"] for row in rows.collect()} == {back, -back}
    assert {Path(unquote(file)).name for file in rows.inputFiles()} == wanted
    table = DeltaTable(f"{long.pipeline.root}/joined")
    dataset = table.to_pyarrow_dataset()
    opened = list(dataset.get_fragments(filter=ds.field("event_date") == day))
    assert sorted(Path(unquote(fragment.path)).name for fragment in opened) == sorted(wanted)
    assert dataset.to_table(filter=ds.field("event_date") == day).num_rows == 2


def test_a_reader_opens_few_files_for_a_typed_column(long: Bench) -> None:
    """Spark's statistics and the kernel's are of the same columns."""
    rows = long.spark.read.format("delta").load(f"{long.pipeline.root}/joined").where("n = 41")
    assert len(rows.inputFiles()) == 1 if long.pipeline.output.partition == ("bucket",) else len(rows.inputFiles()) <= 2
    assert rows.count() == 1
