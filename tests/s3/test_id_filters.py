"""The filters of claims on S3: each is fetched once in the life of a process, and lies mapped on its disk."""

from __future__ import annotations

import uuid

import pyarrow as pa
import pyarrow.parquet as pq

from clickjoin.kernel.filesystem import filesystem
from clickjoin.kernel.id_filter import ids_among, load, place_of
from stack.gateway import Gateway
from tests.s3.proxy import Proxy

COUNT = 300_000  # its filter has more than a megabyte


def test_it_is_fetched_once(gateway: Gateway, proxy: Proxy) -> None:
    gateway.bucket("filters")
    root, file = f"s3://filters/{uuid.uuid4()}", "bucket=b/part-0.parquet"
    ids = [f"id-{number}" for number in range(COUNT)]
    system, base = filesystem(root)
    with system.open_output_stream(f"{base}/{file}") as out:
        pq.write_table(pa.table({"event_id": ids}), out)
    assert ids_among(root, [file], pa.array([ids[5], "fresh"])).ids.to_pylist() == [ids[5]]
    with proxy.rule("note", "GET", f"*{place_of(file)}*") as fetched:
        for _ in range(3):
            found = ids_among(root, [file], pa.array(["fresh", "as fresh"]))
            assert (found.ids.to_pylist(), found.files_read) == ([], 0)
    assert len(fetched.met) == 1
    kept = load(root, file)
    assert kept is not None
    assert not kept.rest.flags.owndata
