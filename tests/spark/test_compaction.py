"""How many files the output has, how large they are, and that a reader sees no change where they are rewritten."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from datetime import UTC, datetime

import pyarrow as pa
import pytest

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
