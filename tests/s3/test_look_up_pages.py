"""Look-ups on S3 read pages, few requests a file, and what they give is what the file holds."""

from __future__ import annotations

import uuid

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clickjoin.kernel.filesystem import filesystem
from clickjoin.kernel.parquet_scan import TimeRanges, scan_by_key
from stack.gateway import Gateway
from tests.s3.proxy import Proxy

ROWS, GROUP = 200_000, 65_536
SCHEMA = pa.schema([
    ("event_id", pa.string()), ("event_time", pa.timestamp("us", "UTC")), ("payload", pa.string()),
    ("replica", pa.string()),
])  # fmt: skip


@pytest.mark.parametrize("dictionary", [False, True])
def test_few_rows_of_a_long_file_are_few_requests(gateway: Gateway, proxy: Proxy, dictionary: bool) -> None:
    gateway.bucket("pages")
    root, file, rng = f"s3://pages/{uuid.uuid4()}", "part-0.parquet", np.random.default_rng(7)
    rows = pa.table({
        "event_id": [f"id-{number}" for number in range(ROWS)], "event_time": pa.array(range(ROWS), SCHEMA.types[1]),
        "payload": [rng.bytes(50).hex() for _ in range(ROWS)], "replica": ["main"] * ROWS,
    })  # fmt: skip
    system, base = filesystem(root)
    with system.open_output_stream(f"{base}/{file}") as out:
        pq.write_table(
            rows, out, row_group_size=GROUP, max_rows_per_page=512, write_page_index=True, compression="zstd",
            use_dictionary=["replica"] if dictionary else False,
        )  # fmt: skip
    size = system.get_file_info(f"{base}/{file}").size
    wanted = np.sort(rng.choice(ROWS, 40, replace=False))
    for known in (False, True):
        before = proxy.sent
        with proxy.rule("note", "GET", f"*{file}*") as asked:
            found = scan_by_key(root, [file], rows["event_id"].take(wanted), TimeRanges(wanted), SCHEMA)
        assert found.equals(rows.take(wanted).cast(SCHEMA))
        # Times and ids are a few ranges; a page of records lies further from the next than a request is worth.
        assert len(asked.met) <= (36 if known else 40)
        assert proxy.sent - before < size / 3
