"""Files that workers write: what Delta's log records of them, and that Spark would record the same."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from clickjoin.engines.arrow import ArrowTables
from clickjoin.kernel import data_file, filesystem
from clickjoin.kernel.data_file import Target, write
from clickjoin.kernel.parquet_rows import ends_of
from clickjoin.model.ids import moment
from clickjoin.model.txn import Txn
from clickjoin.schemas import PENDING, REGISTRY
from clickjoin.schemas.arrow import arrow_schema


def claims(*given: tuple[str, int, str, int]) -> pa.Table:
    """Rows of the registry: id, time (microseconds), bucket, shard."""
    rows = [
        {
            "event_id": name,
            "event_time": moment(at),
            "bucket": bucket,
            "shard": shard,
            "token": "t",
            "outcome": "joined",
        }
        for name, at, bucket, shard in given
    ]
    return pa.Table.from_pylist(rows, schema=arrow_schema(REGISTRY))


def target(folder: Path) -> Target:
    """The registry below a folder."""
    return Target(str(folder / "registry"), arrow_schema(REGISTRY), REGISTRY.partitions, REGISTRY.statistics)


def test_row_groups_are_short_and_have_both_ends(tmp_path: Path) -> None:
    (file,) = write(target(tmp_path), claims(*((f"e{at}", at, "x", 1) for at in range(5_000))), "event_time")
    known = pq.read_metadata(tmp_path / "registry" / file.path)
    assert [known.row_group(number).num_rows for number in range(known.num_row_groups)] == [2_048, 2_048, 904]
    ends = ends_of(known, "event_time")
    assert (ends.least.tolist(), ends.most.tolist()) == ([0, 2_047, 4_095], [2_048, 4_096, 4_999])


def test_a_file_for_each_partition_sorted(tmp_path: Path) -> None:
    files = write(target(tmp_path), claims(("b", 7, "x", 1), ("a", 3, "x", 1), ("c", 5, "y", 0)), "event_time")
    assert sorted((file.rows, file.values["bucket"], file.values["shard"]) for file in files) == [
        (1, "y", "0"),
        (2, "x", "1"),
    ]
    (two,) = (file for file in files if file.rows == 2)
    path = tmp_path / "registry" / two.path
    assert (two.path.startswith("bucket=x/shard=1/part-"), two.size) == (True, path.stat().st_size)
    assert pq.ParquetFile(path).read()["event_id"].to_pylist() == ["a", "b"]
    assert json.loads(two.stats) == {
        "numRecords": 2,
        "minValues": {"event_time": "1970-01-01T00:00:00.000003Z", "event_id": "a", "token": "t"},
        "maxValues": {"event_time": "1970-01-01T00:00:00.000007Z", "event_id": "b", "token": "t"},
        "nullCount": {"event_time": 0, "event_id": 0, "token": 0},
    }


def test_files_and_folders_are_flushed_before_they_are_handed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[str] = []
    monkeypatch.setattr(
        filesystem.os, "fsync", lambda handle: flushed.append(str(Path(f"/proc/self/fd/{handle}").readlink()))
    )
    rows = claims(("b", 7, "x", 1), ("a", 3, "x", 0), ("c", 5, "y", 0))
    files = write(target(tmp_path), rows)
    root = tmp_path / "registry"
    paths = [root / file.path for file in files]
    folders = {folder for path in paths for folder in (path.parent, path.parent.parent)} | {root}
    assert sorted(flushed) == sorted(map(str, [*paths, *folders]))  # each once
    assert set(flushed[: len(paths)]) == set(map(str, paths))


class Away(pafs.SubTreeFileSystem):
    """A store: whatever is no folder of this machine."""


@pytest.mark.parametrize("fails", [False, True])
def test_files_of_a_store_are_there_before_they_are_handed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    own = data_file._store

    def slow(system: pafs.FileSystem, path: str, data: pa.Buffer) -> None:
        time.sleep(0.1)
        if fails and "bucket=y" in path:
            raise OSError(5, "the store is away")
        Path(tmp_path, path).parent.mkdir(parents=True, exist_ok=True)
        own(system, path, data)

    monkeypatch.setattr(data_file, "_store", slow)
    monkeypatch.setattr(data_file, "filesystem", lambda root: (Away(str(tmp_path), pafs.LocalFileSystem()), "registry"))
    rows = claims(("b", 7, "x", 1), ("a", 3, "x", 0), ("c", 5, "y", 0))
    if fails:
        with pytest.raises(OSError, match="the store is away"):
            write(target(tmp_path), rows)
    else:
        files = write(target(tmp_path), rows)
        assert [(tmp_path / "registry" / file.path).stat().st_size for file in files] == [file.size for file in files]


def test_added_to_a_table(tmp_path: Path) -> None:
    delta = ArrowTables(str(tmp_path))
    delta.create(REGISTRY)
    rows = claims(("b", 7, "x", 1), ("a", 3, "x", 1), ("c", 5, "y", 0))
    assert delta.add("registry", write(target(tmp_path), rows), Txn("a", 1))
    found = delta.read("registry").sort_by("event_id")
    assert found.select(rows.column_names).to_pylist() == rows.sort_by("event_id").to_pylist()
    actions = DeltaTable(delta.path("registry")).get_add_actions(flatten=True)
    known: dict[str, Any] = {name: pa.table(actions)[name].to_pylist() for name in ("num_records", "max.event_time")}
    assert sorted(known["num_records"]) == [1, 2]
    assert sorted(known["max.event_time"]) == [moment(5), moment(7)]


def test_long_texts_are_cut(tmp_path: Path) -> None:
    files = write(target(tmp_path), claims(("a" * 5_000_000, 7, "x", 1)))
    stats = json.loads(files[0].stats)
    assert (stats["minValues"]["event_id"], stats["maxValues"]["event_id"]) == ("a" * 64, "a" * 64 + "\U0010ffff")


def test_a_partition_of_no_value_is_refused(tmp_path: Path) -> None:
    """Delta's readers would take the text None for it."""
    rows = pa.table({"event_id": ["a", "b"], "bucket": pa.array(["2026-03-01T1200Z", None])})
    with pytest.raises(ValueError, match="bucket: 1 rows have none"):
        write(Target(str(tmp_path), rows.schema, ("bucket",)), rows)


def test_nulls_and_no_partitions(tmp_path: Path) -> None:
    schema = arrow_schema(PENDING)
    row = dict.fromkeys(schema.names) | {"event_id": "a", "event_time": moment(1)}
    place = Target(str(tmp_path / "pending"), schema, PENDING.partitions, PENDING.statistics)
    (file,) = write(place, pa.Table.from_pylist([row], schema=schema))
    stats = json.loads(file.stats)
    assert (file.values, stats["nullCount"]["due_at"], "due_at" in stats["minValues"]) == ({}, 1, False)
    assert write(place, schema.empty_table()) == []
