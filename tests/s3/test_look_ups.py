"""Look-ups on S3 read row groups that can hold an event, few requests a file, and give what the file holds."""

from __future__ import annotations

import uuid

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clickjoin.kernel.data_file import ROWS_A_GROUP
from clickjoin.kernel.filesystem import filesystem
from clickjoin.kernel.parquet_rows import TimeRanges, scan_by_key
from stack.gateway import Gateway
from tests.s3.proxy import Proxy

ROWS, WANTED = 200_000, 12
SCHEMA = pa.schema([
    ("event_id", pa.string()), ("event_time", pa.timestamp("us", "UTC")), ("payload", pa.string()),
    ("replica", pa.string()),
])  # fmt: skip


@pytest.mark.parametrize("dictionary", [False, True])
def test_few_rows_of_a_long_file_are_few_requests(gateway: Gateway, proxy: Proxy, dictionary: bool) -> None:
    gateway.bucket("groups")
    root, file, rng = f"s3://groups/{uuid.uuid4()}", "part-0.parquet", np.random.default_rng(7)
    times = np.arange(ROWS) * 1_000_000
    rows = pa.table({
        "event_id": [f"id-{number}" for number in range(ROWS)], "event_time": pa.array(times, SCHEMA.types[1]),
        "payload": [rng.bytes(50).hex() for _ in range(ROWS)], "replica": ["main"] * ROWS,
    })  # fmt: skip
    system, base = filesystem(root)
    with system.open_output_stream(f"{base}/{file}") as out:
        few = ["replica"] if dictionary else False
        pq.write_table(rows, out, row_group_size=ROWS_A_GROUP, compression="zstd", use_dictionary=few)
    size = system.get_file_info(f"{base}/{file}").size
    wanted = np.sort(rng.choice(ROWS, WANTED, replace=False))
    before = proxy.sent
    with proxy.rule("note", "GET", f"*{file}*") as asked:
        found = scan_by_key(root, [file], rows["event_id"].take(wanted), TimeRanges(times[wanted]), SCHEMA)
    assert found.equals(rows.take(wanted).cast(SCHEMA))
    # The footer, then of each row group the times, and all else of those that hold one: its columns lie together.
    assert len(asked.met) <= 2 * WANTED + 4
    assert proxy.sent - before < size / 5
