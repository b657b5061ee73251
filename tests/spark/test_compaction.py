"""How many files the output has, how large they are, and that a reader sees no change where they are rewritten."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from datetime import UTC, datetime

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from clickjoin.engines.arrow import ArrowTables
from clickjoin.gc.compaction import FEWEST_IN_OPEN, maintain
from clickjoin.lake import maintenance
from clickjoin.model.txn import Txn
from tests.sampled import some
from tests.spark.bench import NOON, Bench
from tests.spark.test_gc import HOUR, SMALL, joined

# Hours after noon at which what was joined then is of a closed bucket, or date.
CLOSED = {"bucket": 5, "event_date": 37}
BOTH = pytest.mark.parametrize("partition", some(["event_date", "bucket"], 2))


def outputs(bench: Bench, files: int, size: int, number: int) -> None:
    """So many files of one row each in the open bucket of `joined`, of so many bytes: batches' output."""
    row = bench.engine.lake.delta.read("joined").to_pylist()[0]
    schema = bench.engine.lake.delta.read("joined").schema
    tables, written = ArrowTables(bench.engine.lake.delta.root), []
    for n in range(files):
        text = random.Random(f"{number}/{n}").randbytes(size // 2).hex()  # no codec makes it much shorter
        data = pa.Table.from_pylist([row | {"event_id": f"{number}/{n}", "foreign_record": text}], schema=schema)
        written += tables.write("joined", data)
    assert tables.add("joined", written, Txn("by/hand", number))


@pytest.mark.parametrize("partition", some(["bucket", "event_date"], 2))
def test_the_open_hour_never_has_more_than_its_bound(make: Callable[..., Bench], partition: str) -> None:
    """A batch a second and GC every ten minutes: docs/consumers.md states the number."""
    bench = make(**SMALL, output={"partition": partition})
    joined(bench, "a", 0)
    bench.join()
    delta, now, between = bench.engine.lake.delta, datetime.fromtimestamp(NOON + 600, UTC), 600
    for number, files in enumerate((between, FEWEST_IN_OPEN - 2, between), 1):
        outputs(bench, files, 100, number)
        assert delta.files("joined").num_rows < FEWEST_IN_OPEN + between
        maintain(bench.pipeline, bench.engine.lake, now, print)
        assert delta.files("joined").num_rows < FEWEST_IN_OPEN
    assert delta.rows("joined") == 1 + 2 * between + FEWEST_IN_OPEN - 2


@BOTH
def test_closed_output_is_made_of_few_files_of_a_size(
    make: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch, partition: str
) -> None:
    """Of 64 to 128 MB, but for one: here a thousandth of that. Then nothing is due, however often GC comes."""
    bench = make(**SMALL, output={"partition": partition})
    joined(bench, "a", 0)
    bench.join()
    monkeypatch.setattr(maintenance, "LARGE_OUTPUT", 64_000)
    monkeypatch.setattr(maintenance, "OUTPUT_FILE", 128_000)
    outputs(bench, 30, 20_000, 1)
    delta, now = bench.engine.lake.delta, datetime.fromtimestamp(NOON + CLOSED[partition] * HOUR, UTC)
    for _ in range(3):
        maintain(bench.pipeline, bench.engine.lake, now, print)
    sizes = sorted(delta.files("joined")["size_bytes"].to_pylist())
    assert (len(sizes) <= 7, sizes[1] > 50_000, sizes[-1] < 140_000) == (True, True, True), sizes
    assert delta.rows("joined") == 31
    version = delta.version("joined")
    assert maintain(bench.pipeline, bench.engine.lake, now, print).rewritten["joined"] == 0
    assert delta.version("joined") == version


@BOTH
def test_a_reader_sees_no_change_where_files_are_rewritten(make: Callable[..., Bench], partition: str) -> None:
    """dataChange is false in each entry: a stream of the table passes over the commit."""
    bench = make(**SMALL, output={"partition": partition})
    for n in range(4):
        joined(bench, f"c{n}", 0)
        bench.join()
    maintain(bench.pipeline, bench.engine.lake, datetime.fromtimestamp(NOON + CLOSED[partition] * HOUR, UTC), print)
    log = bench.disk / f"joined/_delta_log/{bench.engine.lake.delta.version('joined'):020d}.json"
    entries = [json.loads(line) for line in log.read_text().splitlines()]
    files = [entry[kind] for entry in entries for kind in ("add", "remove") if kind in entry]
    assert [file["dataChange"] for file in files] == [False] * 5


def without_greatest(bench: Bench, table: str, column: str = "event_id") -> None:
    """Files have the statistics that earlier versions wrote of a text that is longer than the log keeps."""
    for log in (bench.disk / f"{table}/_delta_log").glob("*.json"):
        entries = [json.loads(line) for line in log.read_text().splitlines()]
        for added in (entry["add"] for entry in entries if "add" in entry):
            stats = json.loads(added["stats"])
            del stats["maxValues"][column]
            added["stats"] = json.dumps(stats)
        log.write_text("".join(f"{json.dumps(entry)}\n" for entry in entries))
        log.with_name(f".{log.name}.crc").unlink(missing_ok=True)
    bench.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # type: ignore[union-attr]
    bench.engine = bench.replica("main")


def found(bench: Bench, table: str, value: str) -> tuple[int, int]:
    """Rows of an id that PyArrow finds, and DuckDB."""
    there = DeltaTable(str(bench.disk / table))
    sql = duckdb.connect()
    sql.register("seen", there.to_pyarrow_dataset())
    known = sql.execute("SELECT count(*) FROM seen WHERE event_id = ?", [value]).fetchall()
    return there.to_pyarrow_table(filters=[("event_id", "=", value)]).num_rows, known[0][0]


@BOTH
def test_files_whose_statistics_have_one_end_are_repaired(make: Callable[..., Bench], partition: str) -> None:
    """Readers took the end that was missing for null, and found no row of the file: also where it lies alone."""
    bench = make(**SMALL, output={"partition": partition})
    clicked = joined(bench, f"c{'x' * 70}", 0)["event_id"]
    bench.join()
    names = ("joined", "registry", "primary", "foreign")
    for name in names:
        without_greatest(bench, name)
    before, now = bench.all_tables(), datetime.fromtimestamp(NOON + 600, UTC)
    assert found(bench, "joined", clicked) == (0, 0)
    done = maintain(bench.pipeline, bench.engine.lake, now, print)
    assert done.repaired == dict.fromkeys(names, 1)
    assert found(bench, "joined", clicked) == found(bench, "registry", clicked) == (1, 1)
    assert bench.all_tables() == before
    version = bench.engine.lake.delta.version("joined")
    assert maintain(bench.pipeline, bench.engine.lake, now, print).repaired == {}
    assert bench.engine.lake.delta.version("joined") == version
    joined(bench, "c9", 0)
    assert bench.join()["joined"] == 1


def test_a_text_that_has_none_above_is_not_rewritten_each_time(make: Callable[..., Bench]) -> None:
    """Spark writes no greatest value of it, whichever file it is in."""
    bench = make(**SMALL)
    joined(bench, "c1", 0)
    bench.join()
    outputs(bench, 1, 100, 1)
    lake, last = bench.engine.lake, "\U0010ffff" * 70
    row = lake.delta.read("joined").to_pylist()[0] | {"event_id": last}
    data = pa.Table.from_pylist([row], schema=lake.delta.read("joined").schema)
    tables = ArrowTables(lake.delta.root)
    assert tables.add("joined", tables.write("joined", data), Txn("by/hand", 2))
    assert lake.rewrite("joined", whole=True) == 3
    assert pa.table(DeltaTable(str(bench.disk / "joined")).get_add_actions(flatten=True))["max.event_id"].null_count
    assert maintain(bench.pipeline, lake, datetime.fromtimestamp(NOON + 600, UTC), print).repaired == {}
