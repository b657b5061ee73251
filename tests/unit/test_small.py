"""Small tables: written and read without Spark, each transaction once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from threading import Barrier

import pyarrow as pa
import pytest

from clickjoin.engines.arrow import ArrowTables
from clickjoin.kernel.data_file import DataFile, Target, write
from clickjoin.kernel.types import delta_type
from clickjoin.model.errors import FilesGone, LakeError
from clickjoin.model.txn import Txn
from clickjoin.schemas import BOUNDARY, METRICS, PENDING
from clickjoin.schemas.arrow import arrow_schema

NOW = datetime(2026, 1, 1, 12, 0, 0, 123456, UTC)


@pytest.fixture
def delta(tmp_path: Path) -> ArrowTables:
    tables = ArrowTables(str(tmp_path))
    tables.create(BOUNDARY)
    return tables


def entry(shards: int) -> dict[str, object]:
    return {"shard": shards, "boundary": NOW, "at": NOW}


def shards(delta: ArrowTables) -> list[int]:
    return sorted(delta.read("registry_boundary")["shard"].to_pylist())


def test_created_once(delta: ArrowTables) -> None:
    assert delta.exists("registry_boundary")
    assert not delta.create(BOUNDARY)
    assert not delta.exists("metrics")
    assert ArrowTables(delta.path("..")).exists("registry_boundary") is False


def test_one_of_many_creates(tmp_path: Path) -> None:
    """A second creation must not be committed on top of the first: it would replace its schema."""
    copies, rounds = 4, 15
    barrier = Barrier(copies, timeout=30)

    def work(_: int) -> list[bool]:
        made = []
        for at in range(rounds):
            mine = ArrowTables(f"{tmp_path}/{at}")
            barrier.wait()
            made.append(mine.create(METRICS))
        return made

    with ThreadPoolExecutor(copies) as pool:
        made = list(pool.map(work, range(copies)))
    assert [sum(won) for won in zip(*made, strict=True)] == [1] * rounds
    assert {ArrowTables(f"{tmp_path}/{at}").version("metrics") for at in range(rounds)} == {0}


def test_append_and_read(delta: ArrowTables) -> None:
    assert (delta.version("registry_boundary"), delta.rows("registry_boundary"), shards(delta)) == (0, 0, [])
    assert delta.append("registry_boundary", [entry(1), entry(2)])
    assert delta.append("registry_boundary", [])
    assert (delta.version("registry_boundary"), delta.rows("registry_boundary"), shards(delta)) == (2, 2, [1, 2])
    assert delta.read("registry_boundary").to_pylist()[0] == entry(1)
    assert delta.read("registry_boundary", filters=[("shard", "=", 2)], columns=["shard"]).to_pylist() == [{"shard": 2}]


def test_a_txn_is_taken_once(delta: ArrowTables) -> None:
    assert delta.latest_txn_version("registry_boundary", "app") == -1
    assert delta.append("registry_boundary", [entry(1)], Txn("app", 3))
    for version in (3, 2):
        assert not delta.append("registry_boundary", [entry(2)], Txn("app", version))
        assert not delta.commit_txn_only("registry_boundary", Txn("app", version))
    assert delta.append("registry_boundary", [entry(4)], Txn("other", 1))
    assert delta.append("registry_boundary", [entry(5)], Txn("app", 4))
    assert (
        shards(delta),
        delta.latest_txn_version("registry_boundary", "app"),
        delta.latest_txn_version("registry_boundary", "other"),
    ) == (
        [1, 4, 5],
        4,
        1,
    )


def test_fix_commits_no_rows(delta: ArrowTables) -> None:
    before = delta.version("registry_boundary")
    assert delta.commit_txn_only("registry_boundary", Txn("app", 7))
    assert not delta.commit_txn_only("registry_boundary", Txn("app", 7))
    assert not delta.append("registry_boundary", [entry(1)], Txn("app", 7))
    assert (delta.version("registry_boundary"), shards(delta)) == (before + 1, [])
    assert ArrowTables(delta.path("")[:-1]).latest_txn_version("registry_boundary", "app") == 7


def test_one_of_many_wins(delta: ArrowTables) -> None:
    copies = 4
    barrier = Barrier(copies, timeout=30)

    def work(number: int) -> list[bool]:
        mine = ArrowTables(delta.path("")[:-1])
        won = []
        for version in range(5):
            barrier.wait()
            take = mine.commit_txn_only("registry_boundary", Txn("app", version)) if number == 0 else None
            won.append(mine.append("registry_boundary", [entry(number)], Txn("app", version)) if take is None else take)
        return won

    with ThreadPoolExecutor(copies) as pool:
        wins = list(pool.map(work, range(copies)))
    assert [sum(won) for won in zip(*wins, strict=True)] == [1] * 5
    assert len(shards(delta)) == 5 - sum(wins[0])


def test_writers_of_other_txns_all_get_through(delta: ArrowTables) -> None:
    copies, each = 4, 5

    def work(number: int) -> bool:
        mine = ArrowTables(delta.path("")[:-1])
        return all(mine.append("registry_boundary", [entry(number)], Txn(f"app{number}", v)) for v in range(each))

    with ThreadPoolExecutor(copies) as pool:
        assert all(pool.map(work, range(copies)))
    assert shards(delta) == sorted(list(range(copies)) * each)


def test_no_such_table(delta: ArrowTables) -> None:
    for call in (delta.open, delta.version, delta.read, delta.rows):
        with pytest.raises(
            LakeError, match=r"/metrics: no such table. Check that the lake is mounted; a new one is made by"
        ):
            call("metrics")


def test_partitions_and_files(delta: ArrowTables) -> None:
    delta.create(METRICS)
    for replica in ("main", "east"):
        delta.append("metrics", [{"replica": replica, "sequence": "join", "batch": n} for n in (1, 2)])
    files = delta.files("metrics")
    assert sorted(files["partition.replica"].to_pylist()) == ["east", "main"]
    assert (files["min.batch"].to_pylist(), files["max.batch"].to_pylist()) == ([1, 1], [2, 2])
    assert delta.rows("metrics") == 4
    assert len(delta.read("metrics", filters=[("replica", "=", "east"), ("batch", ">=", 2)])) == 1


def test_columns(delta: ArrowTables) -> None:
    delta.create(PENDING)
    columns = delta.columns("pending")
    assert (columns["event_id"], columns["shard"], columns["batch"], columns["due_at"]) == (
        "string",
        "integer",
        "long",
        "timestamp",
    )


@pytest.mark.parametrize(
    ("kind", "name"),
    [("STRING", "string"), (" int ", "integer"), ("Decimal(10, 2)", "decimal(10,2)"), ("DATE", "date")],
)
def test_types(kind: str, name: str) -> None:
    assert delta_type(kind) == name


@pytest.mark.parametrize("kind", ["", "VARCHAR(3)", "ARRAY<INT>", "STRUCT<a: INT>", "DECIMAL", "strin"])
def test_no_types(kind: str) -> None:
    with pytest.raises(LakeError, match=r"is not supported for a column\. Use one of"):
        delta_type(kind)


def written(delta: ArrowTables) -> list[DataFile]:
    """A file with one entry, beside the table's own."""
    target = Target(delta.path("registry_boundary"), arrow_schema(BOUNDARY))
    return write(target, pa.Table.from_pylist([entry(7)], schema=arrow_schema(BOUNDARY)))


def test_files_are_added_once(delta: ArrowTables) -> None:
    assert delta.add("registry_boundary", written(delta), Txn("a", 1))
    assert not delta.add("registry_boundary", written(delta), Txn("a", 1))
    assert shards(delta) == [7]


def test_files_that_are_gone_are_not_added(delta: ArrowTables) -> None:
    """A collector whose clock was wrong, or a VACUUM by hand, came between writing and committing."""
    files = written(delta) + written(delta)
    Path(delta.path("registry_boundary"), files[1].path).unlink()
    with pytest.raises(FilesGone, match=rf"registry_boundary/: 1 of 2 files .* gone: {files[1].path}; .*is run again"):
        delta.add("registry_boundary", files, Txn("a", 1))
    assert (shards(delta), delta.latest_txn_version("registry_boundary", "a")) == ([], -1)
    assert delta.add("registry_boundary", written(delta), Txn("a", 1))
    assert shards(delta) == [7]


def test_files_that_were_cut_short_are_not_added(delta: ArrowTables) -> None:
    file = written(delta)[0]
    Path(delta.path("registry_boundary"), file.path).write_bytes(b"PAR1")
    with pytest.raises(FilesGone, match=rf"{file.path} \(4 bytes, not {file.size}\)"):
        delta.add("registry_boundary", [file], Txn("a", 1))
    assert shards(delta) == []
