"""The workers' code travels by value, and reads without pandas, whose import would cost every new worker a second."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyspark.cloudpickle
import pytest

from clickjoin.joiner.adapter import load_adapter
from clickjoin.kernel import (
    join_task,
    land_task,
)
from clickjoin.kernel.adapter import BothRecords
from clickjoin.kernel.data_file import Target
from clickjoin.kernel.handshake import checked
from clickjoin.kernel.land_task import Place
from clickjoin.kernel.read_lines import unchanged
from clickjoin.schemas import PRIMARY, QUARANTINE
from clickjoin.schemas.arrow import arrow_schema
from clickjoin.sources.port import RECORDS_DDL
from clickjoin.spark.ship import ship_adapter, ship_kernel
from tests.unit.resolving_bench import job, part
from tests.unit.sources_bench import Feed, event, spec

WORKER = """
import sys
from pyspark import cloudpickle
import pyarrow as pa
ids = pa.RecordBatch.from_arrays([pa.Array.from_buffers(pa.int64(), 1, [None, pa.py_buffer(bytes(8))])], names=["id"])
work = cloudpickle.loads(sys.stdin.buffer.read())
done = list(work(iter([ids])))
print(sum(batch.num_rows for batch in done))
print([name for name in sys.modules if name.split(".")[0] in ("clickjoin", "pandas")])
print([text for batch in done if "done" in batch.schema.names for text in batch["done"].to_pylist() if text])
"""


@pytest.fixture(autouse=True)
def _shipped() -> None:
    ship_kernel()  # as a session does, before there is a task


class Worker:
    """Takes what is to be mapped, in a session's place."""

    def range(self, *_: int) -> Worker:
        """The rows do not matter."""
        return self

    def mapInArrow(self, each: Any, _: str) -> Any:
        """What would travel."""
        return each


def run(work: Any) -> list[str]:
    """What a process says that has no clickjoin."""
    code = pyspark.cloudpickle.dumps(checked(work))
    done = subprocess.run([sys.executable, "-c", WORKER], input=code, capture_output=True, check=False, cwd="/")
    assert done.stderr.decode() == ""
    return done.stdout.decode().splitlines()


@pytest.mark.parametrize("pattern", ["a.jsonl", "b.csv"])
@pytest.mark.parametrize(
    "fields", [{}, {"event_time": "t", "primary_id": "q", "primary_time": "uuid7"}, {"texts": (("m",), ("n", "o"))}]
)
def test_a_worker_needs_neither_clickjoin_nor_pandas(tmp_path: Path, pattern: str, fields: dict[str, Any]) -> None:
    data = event(1) + b"{bad\n\xff\n" + b'{"id":1,"t":2.5}\n{"id":"1","t":"x"}\n' + event(2)
    (tmp_path / "a.jsonl").write_bytes(data)
    (tmp_path / "b.csv").write_bytes(b'id,t\nh:1:1574562822000001,2019-11-24\nbad\na,b\na,"\nx,1e9\ny,1574562822\n')
    feed = Feed(tmp_path, pattern)
    worker: Any = Worker()
    work = feed.source.read_through(worker, feed.plan().splits, spec(**fields), unchanged, RECORDS_DDL)
    no_header = pattern == "b.csv" and "primary_id" in fields  # which has no q, and is one more record
    assert run(work)[:2] == ["7" if no_header else "6", "[]"]


def test_nor_to_land(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(event(1) + b"{bad\n" + event(2))
    feed = Feed(tmp_path, "*.jsonl")
    target = Target(str(tmp_path / "primary"), arrow_schema(PRIMARY), PRIMARY.partitions, PRIMARY.statistics)
    quarantine = Target(str(tmp_path / "quarantine"), arrow_schema(QUARANTINE), (), QUARANTINE.statistics)
    each = land_task.land_batches(target, quarantine, Place(3600, (), (4,), 7, "main", 1, "primary"))
    worker: Any = Worker()
    work = feed.source.read_through(worker, feed.plan().splits, spec(), each, "done STRING")
    said = run(work)
    assert said[:2] == ["1", "[]"]
    done = json.loads(ast.literal_eval(said[2])[0])
    assert (done["facts"]["good"], done["facts"]["bad"]) == (2, 1)
    assert {name: [file[2] for file in done[name]] for name in ("good", "bad")} == {"good": [2], "bad": [1]}


def test_nor_to_join(tmp_path: Path) -> None:
    ship_adapter(BothRecords)
    clicks = [("c1", 5, "q1", 1), ("c1", 5, "q1", 1), ("c2", 6, "q9", 2)]
    made = part(tmp_path, clicks, queries=[("q1", 1)])
    work = join_task.work_of(job(tmp_path), [[made]])
    said = run(work)
    assert said[:2] == ["2", "[]"]
    assert {name: tally["rows"] for name, tally in json.loads(ast.literal_eval(said[2])[0])["tallies"].items()} == {
        "repeat": 0, "joined": 1, "pending": 1, "expired": 0, "filtered": 0, "unjoinable": 0,
    }  # fmt: skip


SHOP = {
    "__init__.py": "CURRENCY = 'EUR'\n",
    "rates.py": "import shop.deep.numbers, shop.adapters\ndef rate(name): return shop.deep.numbers.RATES[name]\n",
    "deep/__init__.py": "",
    "deep/numbers.py": "RATES = {'EUR': 2.5}\n",
    "adapters.py": """
import shop
from clickjoin.joiner.adapter import ArrowAdapter
from shop import CURRENCY, rates

class Priced(ArrowAdapter):
    columns = {"price": "DOUBLE"}

    def merge_table(self, joined):
        return rates.rate(CURRENCY), shop.rates.rate(shop.CURRENCY)
""",
}
ALONE = """
import sys
from pyspark import cloudpickle
adapter = cloudpickle.loads(sys.stdin.buffer.read())
print(adapter.merge_table(None), [name for name in sys.modules if name.split(".")[0] in ("clickjoin", "shop")])
"""


def test_an_adapter_travels_with_the_modules_of_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules that import each other, by name or from their package, where none of them is installed."""
    for name, text in SHOP.items():
        (tmp_path / "shop" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "shop" / name).write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    adapter = load_adapter("shop.adapters:Priced")
    ship_kernel()
    ship_adapter(type(adapter))
    code = pyspark.cloudpickle.dumps(adapter)
    done = subprocess.run([sys.executable, "-c", ALONE], input=code, capture_output=True, check=False, cwd="/")
    assert done.stderr.decode() == ""
    assert done.stdout.decode() == "(2.5, 2.5) []\n"
