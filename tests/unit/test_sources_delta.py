"""A Delta table as a source: what is new in each version, whoever wrote it, and what is said of what is gone."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from clickjoin.kernel.table_rows import VERSION_BITS
from clickjoin.model.errors import SourceError
from clickjoin.model.ids import RecordSpec
from clickjoin.model.split import Budget, LastRecord, SourceOffset, Split
from clickjoin.sources.delta.source import DeltaSource

ALL = Budget(1 << 40, 1 << 60)
SPEC = RecordSpec(("id",), "at", (), None, 0, 1 << 60, 1 << 20)
AT = 1_700_000_000


class Reader:
    """A source and how far it has been read, as an engine keeps it."""

    def __init__(self, path: Path, **options: Any) -> None:
        self.path, self.options = str(path), options
        self.offsets: dict[str, SourceOffset] = {}
        self.problems: list[str] = []
        self.splits: tuple[Split, ...] = ()
        self.restart()

    def restart(self) -> None:
        """All that is kept is the offsets, as plain data."""
        self.offsets = {
            name: SourceOffset(name, json.loads(json.dumps(dict(offset.payload))))
            for name, offset in self.offsets.items()
        }
        self.source = DeltaSource(self.path, **self.options)

    def plan(self, budget: Budget = ALL) -> int:
        """Plan a batch; the number of its splits."""
        plan = self.source.plan(self.offsets, budget)
        self.offsets |= {offset.partition: offset for offset in plan.offsets}
        self.problems += [problem.kind for problem in plan.problems]
        self.backlog = plan.backlog_events
        self.splits = tuple(
            Split(one.partition, json.loads(json.dumps(dict(one.payload))), one.path, one.events, one.bytes)
            for one in plan.splits
        )
        return len(self.splits)

    def rows(self) -> list[dict[str, Any]]:
        """Records of the batch that was planned last."""
        return self.source.read_here(self.splits, SPEC).to_pylist()

    def next(self, budget: Budget = ALL) -> list[str]:
        """Ids of the next batch, in the order of their offsets; `!reason` of what is no record."""
        self.plan(budget)
        rows = sorted(self.rows(), key=lambda row: (row["source_partition"], row["offset"]))
        return [row["event_id"] or f"!{row['reason']}" for row in rows]


def add(path: Path, *names: str, mode: str = "append", **more: Any) -> DeltaTable:
    """Commit a row for each id; `more`: further columns."""
    rows = {"id": list(names), "at": [AT + at for at in range(len(names))]}
    rows |= {name: [value] * len(names) for name, value in more.items()}
    write_deltalake(str(path), pa.table(rows), mode=mode, schema_mode="merge" if mode == "append" else None)  # type: ignore[call-overload]
    return DeltaTable(str(path))


def merge(path: Path, rows: Mapping[str, list[Any]]) -> None:
    """Upsert rows by id."""
    DeltaTable(str(path)).merge(pa.table(dict(rows)), "s.id = t.id", "s", "t").when_matched_update_all(
    ).when_not_matched_insert_all().execute()  # fmt: skip


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "table"


def test_what_each_version_adds_is_read_once(path: Path) -> None:
    add(path, "a", "b")
    reader = Reader(path)
    assert reader.next() == ["a", "b"]
    assert reader.next() == []
    add(path, "c")
    add(path, "d", "e")
    reader.restart()
    assert reader.next() == ["c", "d", "e"]
    places = [(row["offset"] >> VERSION_BITS, row["offset"] & 0xFFFFFFFF, row["length"]) for row in reader.rows()]
    assert places == [(1, 0, 1), (2, 0, 1), (2, 1, 1)]
    assert {row["source_partition"] for row in reader.rows()} == {str(DeltaTable(str(path)).metadata().id)}
    assert json.loads(reader.rows()[0]["payload"]) == {"id": "c", "at": AT}
    assert not reader.plan()


@pytest.mark.parametrize("most", [1, 2, 3, 7])
def test_batches_of_few_rows(path: Path, most: int) -> None:
    """A budget cuts versions and files; all is read once, in order, and the rest is known as backlog."""
    names = [f"n{at:02}" for at in range(12)]
    add(path, *names[:5])
    add(path, *names[5:7])
    reader, found, left = Reader(path), [], 7
    assert reader.next(Budget(most, 1 << 60)) == names[: min(most, 7)]
    found += [names[:most]]
    left = 7 - min(most, 7)
    assert reader.backlog == left
    add(path, *names[7:])
    seen = names[: min(most, 7)]
    while some := reader.next(Budget(most, 1 << 60)):
        assert len(some) <= most
        seen += some
        reader.restart()
    assert seen == names
    assert reader.backlog == 0


def test_where_reading_starts(path: Path) -> None:
    add(path, "a")
    add(path, "b")
    add(path, "c")
    latest, second = Reader(path, start="latest"), Reader(path, start=1)
    assert latest.next() == []
    assert second.next() == ["b", "c"]
    add(path, "d")
    assert (latest.next(), second.next()) == (["d"], ["d"])


def test_files_that_only_lie_otherwise_bring_nothing(path: Path) -> None:
    add(path, "a")
    add(path, "b")
    reader = Reader(path)
    reader.next()
    table = add(path, "c")
    table.optimize.compact()
    add(path, "d")
    assert reader.next() == ["c", "d"]
    DeltaTable(str(path)).vacuum(0, dry_run=False, enforce_retention_duration=False)
    assert reader.next() == []
    assert reader.problems == []


def test_rewritten_rows_are_kept_apart_from_new_ones(path: Path) -> None:
    """MERGE copies rows that it does not change; what it changes comes again, and what it inserts is new."""
    add(path, "a", "b", "c", n=1)
    reader = Reader(path)
    assert reader.next() == ["a", "b", "c"]
    merge(path, {"id": ["b", "x"], "at": [AT + 1, AT + 9], "n": [2, 2]})
    assert sorted(reader.next()) == ["b", "x"]
    assert reader.problems == ["rewritten"]
    DeltaTable(str(path)).delete("id = 'a'")
    assert reader.next() == []
    assert reader.problems == ["rewritten"] * 2
    assert not reader.plan()
    assert reader.problems == ["rewritten"] * 2  # said once
    add(path, "z")
    assert reader.next() == ["z"]


def test_a_rewritten_version_is_read_whole_and_said_once(path: Path) -> None:
    """Where the budget has no room for it beside others it is left to the next batch."""
    add(path, "a", "b", "c")
    reader = Reader(path)
    reader.next()
    add(path, "d", "e")
    merge(path, {"id": ["b", "x"], "at": [AT + 1, AT + 9]})
    assert reader.next(Budget(2, 1 << 60)) == ["d", "e"]
    assert (reader.problems, reader.backlog > 0) == ([], True)
    assert "x" in reader.next(Budget(2, 1 << 60))
    assert (reader.problems, reader.backlog) == (["rewritten"], 0)


def test_rows_that_are_there_twice_are_counted(path: Path) -> None:
    """Each former row stands for one: a third copy of a row is a new record, which its id makes a repeat."""
    rows = {"id": ["a", "a", "b"], "at": [AT] * 3}
    write_deltalake(str(path), pa.table(rows))
    reader = Reader(path)
    assert reader.next() == ["a", "a", "b"]
    write_deltalake(str(path), pa.table({"id": ["a", "b", "a", "a"], "at": [AT] * 4}), mode="overwrite")
    assert reader.next() == ["a"]


def test_a_new_column_is_no_change(path: Path) -> None:
    """A row that is rewritten with a column more, which is null in it, is the row that it was."""
    add(path, "a", "b")
    reader = Reader(path)
    reader.next()
    write_deltalake(
        str(path), pa.table({"id": ["b", "a", "c"], "at": [AT + 1, AT, AT + 5], "more": [None, None, "x"]}),
        mode="overwrite", schema_mode="overwrite",
    )  # fmt: skip
    assert reader.next() == ["c"]


def test_a_rewrite_whose_former_files_are_gone(path: Path) -> None:
    """Which rows are new cannot be known: all are read, and that is said; verification proves nothing of it."""
    add(path, "a", "b")
    reader = Reader(path)
    reader.next()
    merge(path, {"id": ["b", "x"], "at": [AT + 7, AT + 9]})
    DeltaTable(str(path)).vacuum(0, dry_run=False, enforce_retention_duration=False)
    assert sorted(reader.next()) == ["!unclear-rewrite", "a", "b", "x"]
    assert reader.source.lost(reader.splits) == {}
    with pytest.raises(SourceError, match="former files of a rewritten version were cleaned away"):
        reader.source.read_again(None, reader.splits, SPEC)  # type: ignore[arg-type]


def test_files_that_were_cleaned_away_before_they_were_read(path: Path) -> None:
    add(path, "a")
    reader = Reader(path)
    reader.next()
    add(path, "b", "c")
    table = add(path, "d")
    gone = Path(table.file_uris()[1] if "d" not in _ids(table.file_uris()[1]) else table.file_uris()[0])
    lost = _ids(str(gone))
    gone.unlink()
    found = reader.next()
    assert "!source-lost" in found
    assert set(lost).isdisjoint(found)
    row = next(row for row in reader.rows() if row["reason"] == "source-lost")
    assert (row["length"], row["raw"]) == (len(lost), None)
    assert list(reader.source.lost(reader.splits)) == [reader.splits[0].partition]
    add(path, "e")
    assert reader.next() == ["e"]


def test_a_file_without_statistics_that_is_gone(path: Path) -> None:
    """How many rows it had is not known; that there were some is, and is said."""
    add(path, "a")
    reader = Reader(path)
    reader.next()
    file = {"path": "x.parquet", "partitionValues": {}, "size": 1, "dataChange": True, "modificationTime": 1}
    (path / "_delta_log" / f"{1:020}.json").write_text(json.dumps({"add": file}) + "\n")
    assert reader.next() == ["!source-lost"]
    assert reader.next() == []


def _ids(file: str) -> list[str]:
    import pyarrow.parquet as pq

    return list(pq.read_table(file)["id"].to_pylist())


def test_versions_that_were_cleaned_out_of_the_log(path: Path) -> None:
    add(path, "a")
    reader = Reader(path)
    reader.next()
    add(path, "b")
    add(path, "c")
    DeltaTable(str(path)).create_checkpoint()
    for version in (0, 1):
        (path / "_delta_log" / f"{version:020}.json").unlink()
    assert reader.next() == ["!source-lost", "c"]
    assert reader.problems == ["lost-tail"]
    assert reader.next() == []
    assert reader.problems == ["lost-tail"]


def test_a_log_that_was_cleaned_up_to_where_it_was_read(path: Path) -> None:
    add(path, "a")
    add(path, "b")
    reader = Reader(path)
    reader.next()
    add(path, "c")
    DeltaTable(str(path)).create_checkpoint()
    for version in (0, 1):
        (path / "_delta_log" / f"{version:020}.json").unlink()
    reader.restart()
    assert reader.next() == ["c"]
    assert reader.next() == []
    assert reader.problems == []


def test_another_table_in_its_place(path: Path) -> None:
    add(path, "a")
    add(path, "b")
    reader = Reader(path)
    first = reader.next() and reader.splits[0].partition
    shutil.rmtree(path)
    assert reader.next() == []
    assert reader.problems == ["missing"]
    add(path, "c")
    assert reader.next() == ["c"]
    assert reader.problems == ["missing", "rewritten"]
    assert reader.splits[0].partition != first
    add(path, "d")
    reader.restart()
    assert reader.next() == ["d"]


def test_an_older_state_of_the_table(path: Path, tmp_path: Path) -> None:
    """Its versions come again with other rows: it is read again, and no offset is given twice."""
    add(path, "a")
    shutil.copytree(path, tmp_path / "copy")
    add(path, "b")
    reader = Reader(path)
    assert reader.next() == ["a", "b"]
    first = reader.splits[0].partition
    shutil.rmtree(path)
    shutil.copytree(tmp_path / "copy", path)
    add(path, "x")
    assert reader.next() == ["a", "x"]
    assert reader.splits[0].partition == f"{first}+"
    assert reader.problems == ["rewritten"]


def test_after_a_record_that_has_landed(path: Path) -> None:
    """A journal that was lost goes on where its last record says, unless that was of a first look at all rows."""
    add(path, "a")
    reader = Reader(path)
    reader.next()
    first = reader.rows()[0]
    add(path, "b", "c")
    reader.next()
    row = reader.rows()[0]
    last = LastRecord(row["source_partition"], row["path"], row["offset"], 1, row["event_id"])
    offset = reader.source.resume(last, SPEC)
    assert offset
    reader.offsets = {offset.partition: offset}
    assert reader.next() == ["c"]
    unknown = LastRecord("another", row["path"], row["offset"], 1, "b")
    assert reader.source.resume(unknown, SPEC) is None
    assert reader.source.resume(LastRecord(first["source_partition"], "", 5, 1, "a"), SPEC) is None
    assert reader.source.resume(replace(last, event_id="x"), SPEC) is None, "another row lies in its place"


def test_changes_that_the_table_records(path: Path) -> None:
    """Where there is a change data feed it says what is new, without a look at the former rows."""
    write_deltalake(
        str(path), pa.table({"id": ["a", "b"], "at": [AT, AT]}), configuration={"delta.enableChangeDataFeed": "true"}
    )
    reader = Reader(path)
    reader.next()
    merge(path, {"id": ["b", "x"], "at": [AT + 7, AT + 9]})
    assert list(path.glob("_change_data/*"))
    before = DeltaTable(str(path))
    assert sorted(reader.next()) == ["b", "x"]
    assert "_change_type" not in json.loads(reader.rows()[0]["payload"])
    assert before.version() == 1


def test_tables_whose_files_do_not_say_what_their_rows_are(path: Path) -> None:
    add(path, "a")
    reader = Reader(path)
    reader.next()
    log = path / "_delta_log" / f"{1:020}.json"
    file = {"path": "x.parquet", "partitionValues": {}, "size": 1, "dataChange": True, "modificationTime": 1}
    log.write_text(json.dumps({"add": file | {"deletionVector": {"storageType": "u"}}}) + "\n")
    with pytest.raises(SourceError, match="has deletion vectors"):
        reader.plan()
    reader.restart()
    log.write_text(json.dumps({"add": file | {"path": "file:///elsewhere/x.parquet"}}) + "\n")
    with pytest.raises(SourceError, match="lies outside of it"):
        reader.plan()
    log.write_text('{"add": {')
    with pytest.raises(SourceError, match="entry 1 of its log cannot be read"):
        reader.plan()


def test_a_folder_that_is_not_mounted_loses_nothing(path: Path) -> None:
    """Files whose log is not there either are not lost: nothing can be said of them."""
    add(path, "a")
    reader = Reader(path)
    reader.plan()
    path.rename(path.with_name("away"))
    with pytest.raises(SourceError, match="its log cannot be seen"):
        reader.source.lost(reader.splits)
    with pytest.raises(SourceError, match="its log cannot be seen"):
        reader.rows()
