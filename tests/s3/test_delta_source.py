"""A Delta table on S3 as a source: what each version added, what was moved, and what is gone."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from clickjoin.lake.location import location
from clickjoin.model.errors import SourceError
from clickjoin.model.ids import RecordSpec
from clickjoin.model.split import Budget, SourceOffset
from clickjoin.sources.delta.source import DeltaSource
from stack.gateway import Gateway

TABLE = "s3://tables/some/table"
SPEC = RecordSpec(("id",), "at", (), None, 0, 1 << 60, 1 << 20)


@pytest.fixture(scope="module", autouse=True)
def bucket(gateway: Gateway) -> Iterator[None]:
    gateway.bucket("tables")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in gateway.environment().items():
            patch.setenv(name, value)
        yield


def add(*names: str) -> None:
    rows = pa.table({"id": list(names), "at": [1_700_000_000] * len(names), "day": ["a b"] * len(names)})
    write_deltalake(TABLE, rows, mode="append", partition_by=["day"])


def test_a_table_on_s3_is_read_by_versions() -> None:
    source, offsets = DeltaSource(TABLE), dict[str, SourceOffset]()

    def following() -> list[str]:
        plan = source.plan(offsets, Budget(1 << 40, 1 << 60))
        offsets.update({offset.partition: offset for offset in plan.offsets})
        rows = source.read_here(plan.splits, SPEC).sort_by("offset").to_pylist()
        return [row["event_id"] or f"!{row['reason']}" for row in rows]

    assert [problem.kind for problem in source.plan({}, Budget(1, 1)).problems] == ["missing"]
    add("a", "b")
    assert following() == ["a", "b"]
    add("c")
    add("d", "e")
    DeltaTable(TABLE).optimize.compact()
    assert following() == ["c", "d", "e"]
    DeltaTable(TABLE).delete("id = 'a'")
    assert following() == []
    add("f")
    (uri,) = [uri for uri in DeltaTable(TABLE).file_uris() if uri not in DeltaTable(TABLE, version=4).file_uris()]
    location(TABLE).remove([uri.removeprefix(f"{TABLE}/")])
    assert following() == ["!source-lost"]
    gone = DeltaSource("s3://tables/nothing")
    plan = source.plan({}, Budget(1 << 40, 1 << 60))
    with pytest.raises(SourceError, match="its log cannot be seen"):
        gone.read_here(plan.splits, SPEC)
