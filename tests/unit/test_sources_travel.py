"""The workers' code travels by value, and reads without pandas, whose import would cost every new worker a second."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyspark.cloudpickle
import pytest

from clickjoin.sources.files import _carry_code, _reader
from tests.unit.sources_bench import Feed, event, spec

WORKER = """
import sys
from pyspark import cloudpickle
import pyarrow as pa
ids = pa.RecordBatch.from_arrays([pa.Array.from_buffers(pa.int64(), 1, [None, pa.py_buffer(bytes(8))])], names=["id"])
read = cloudpickle.loads(sys.stdin.buffer.read())
print(sum(batch.num_rows for batch in read(iter([ids]))))
print([name for name in sys.modules if name.split(".")[0] in ("clickjoin", "pandas")])
"""


@pytest.mark.parametrize("pattern", ["a.jsonl", "b.csv"])
@pytest.mark.parametrize("fields", [{}, {"event_time": "t", "primary_id": "q", "primary_time": "uuid7"}])
def test_a_worker_needs_neither_clickjoin_nor_pandas(tmp_path: Path, pattern: str, fields: dict[str, str]) -> None:
    data = event(1) + b"{bad\n\xff\n" + b'{"id":1,"t":2.5}\n{"id":"1","t":"x"}\n' + event(2)
    (tmp_path / "a.jsonl").write_bytes(data)
    (tmp_path / "b.csv").write_bytes(b'id,t\nh:1:1574562822000001,2019-11-24\nbad\na,b\na,"\nx,1e9\ny,1574562822\n')
    feed = Feed(tmp_path, pattern)
    chunks, _ = feed.source._chunks(feed.plan().slices)
    _carry_code()
    code = pyspark.cloudpickle.dumps(_reader([chunks], spec(**fields)))
    done = subprocess.run([sys.executable, "-c", WORKER], input=code, capture_output=True, check=False, cwd="/")
    assert (done.stdout.split(b"\n")[:2], done.stderr) == ([b"6", b"[]"], b"")
