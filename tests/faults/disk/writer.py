"""A process that commits when it is asked to: a JSON line in, a JSON line out. Arguments: spark | delta-rs, a lake.

On a local disk it is run with a Disk preloaded, so that its calls can be held, made to fail, or answered by an error
although they were done; on S3 by a proxy.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from clickjoin.engines.arrow import ArrowLake, ArrowTables
from clickjoin.model.extent import Extent
from clickjoin.model.txn import Txn
from clickjoin.schemas import REGISTRY
from clickjoin.schemas.arrow import arrow_schema
from tests.claims import append_by_spark, claim_rows, merge_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AT = datetime(2026, 1, 1, 0, 30, tzinfo=UTC)
BUCKET = "2026-01-01T0000Z"


def rows(ids: str, token: str) -> list[tuple[Any, ...]]:
    """Claims, one a letter."""
    return [(name, AT, BUCKET, 0, token, "joined") for name in ids]


def _table(ids: str, token: str) -> pa.Table:
    named = [dict(zip(REGISTRY.names, row, strict=True)) for row in rows(ids, token)]
    return pa.Table.from_pylist(named, schema=arrow_schema(REGISTRY))


class DeltaRs:
    """Commits of delta-rs."""

    def __init__(self, root: str) -> None:
        self.delta = ArrowTables(root)

    def append(self, ids: str, txn: Txn) -> bool:
        """An append, once a txn."""
        return self.delta.append_table("registry", _table(ids, txn.app_id), txn)

    def claim(self, ids: str, txn: Txn) -> int | None:
        """An insert of what is not claimed yet; where another commit came first, again, as ArrowLake.rerun has it."""
        return claim_rows(ArrowLake(cast("SparkSession", None), self.delta.root), _table(ids, txn.app_id), txn)

    def plain(self, ids: str, txn: Txn) -> bool:
        """An append without a txn."""
        return self.delta.append_table("registry", _table(ids, txn.app_id))


class OnSpark:
    """Commits of Spark's Delta."""

    def __init__(self, root: str) -> None:
        from clickjoin.spark.session import in_process

        self.lake = ArrowLake(in_process("1", "1g", s3=root.startswith("s3://")), root)

    def _frame(self, ids: str, txn: Txn) -> Any:
        return self.lake.spark.createDataFrame(rows(ids, txn.app_id), REGISTRY.ddl)

    def append(self, ids: str, txn: Txn) -> None:
        """An append, once a txn."""
        append_by_spark(self.lake, self._frame(ids, txn), txn)

    def claim(self, ids: str, txn: Txn) -> int | None:
        """An insert-only MERGE."""
        self._frame(ids, txn).createOrReplaceTempView("claims")
        return merge_rows(self.lake, "claims", Extent(len(ids), (BUCKET,), AT, AT).sql("t", {0}), txn)

    def pack(self, ids: str, txn: Txn) -> int | None:
        """OPTIMIZE; the files that went, None where another writer was in them."""
        return self.lake.rewrite("registry", BUCKET)


def many(writer: Any, ids: str, txn: Txn) -> int:
    """As many appends as the txn's number says, each under a number of its own; how many there were."""
    for number in range(txn.version):
        writer.append(ids, Txn(txn.app_id, number))
    return txn.version


def main(kind: str, root: str) -> None:
    """Serve until the input ends."""
    writer: Any = OnSpark(root) if kind == "spark" else DeltaRs(root)
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        do: Callable[[str, Txn], Any] = partial(many, writer) if asked["do"] == "many" else getattr(writer, asked["do"])
        try:
            answer = do(asked.get("ids", ""), Txn(asked.get("app", "a"), asked.get("number", 1)))
        except Exception as error:
            answer = f"{type(error).__name__}: {error}"[:2000]
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
