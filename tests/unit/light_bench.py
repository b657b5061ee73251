"""A registry whose handles are light, however few files it has."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from clickjoin.engines.arrow.tables import ArrowTables
from clickjoin.kernel.data_file import DataFile
from clickjoin.lake import light_table
from clickjoin.lake.light_table import LightTable
from clickjoin.model.txn import Txn
from clickjoin.schemas import REGISTRY

BUCKETS = ("2026-03-10T0900Z", "2026-03-10T1000Z", "2026-03-10T1100Z")
KEYS = ("path", "size_bytes", "num_records", "min.event_time", "max.event_time", "partition.bucket", "partition.shard")


@pytest.fixture(autouse=True)
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every handle is a light one."""
    monkeypatch.setattr(light_table, "MANY", 0)
    monkeypatch.setattr(light_table, "_WEIGHED_EVERY", 1)


@pytest.fixture
def lake(tmp_path: Path) -> ArrowTables:
    """A registry of one file."""
    delta = ArrowTables(str(tmp_path))
    delta.create(REGISTRY)
    put(delta, 0, 1)
    return delta


def put(delta: ArrowTables, number: int, batch: int, bucket: str = BUCKETS[0]) -> bool:
    """Add one file under a transaction."""
    return delta.add("registry", [made(delta, number, bucket)], Txn("join", batch))


def made(delta: ArrowTables, number: int, bucket: str = BUCKETS[0]) -> DataFile:
    """A file of a table, that nobody reads."""
    file = Path(delta.path("registry"), f"bucket={bucket}/shard=1/part-{number} %3A.parquet")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"rows")
    ends = {"event_time": f"{bucket[:13]}:00:00.{number:03}Z"}
    said = {"numRecords": number, "minValues": ends, "maxValues": ends, "nullCount": {"event_time": 0}}
    path = str(file.relative_to(delta.path("registry")))
    return DataFile(path, 4, number, {"bucket": bucket, "shard": "1"}, json.dumps(said))


def said(table: DeltaTable) -> tuple[object, ...]:
    """What a handle says."""
    files = pa.table(table.get_add_actions(flatten=True)).select(KEYS).sort_by("path")
    settings = table.metadata().id, table.metadata().configuration
    txn = table.transaction_version("join"), table.transaction_version("nobody")
    return table.version(), files.to_pylist(), settings, table.schema().to_json(), table.protocol(), txn


def light(delta: ArrowTables) -> LightTable:
    """The registry, which has to be light."""
    table = delta.open("registry")
    assert isinstance(table, LightTable)
    assert table.is_light
    return table
