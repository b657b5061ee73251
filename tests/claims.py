"""Claims by hand: as the product makes them, and as Spark's writers of another program do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from clickjoin.engines.arrow.claims import commit_claims
from clickjoin.schemas import REGISTRY
from clickjoin.schemas.arrow import arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from clickjoin.engines.arrow import ArrowLake
    from clickjoin.model.txn import Txn

_TXN_APP = "spark.databricks.delta.write.txnAppId"
_TXN_VERSION = "spark.databricks.delta.write.txnVersion"


def claim_rows(lake: ArrowLake, rows: pa.Table, txn: Txn, *, by_id: bool = False) -> int | None:
    """Claim rows as a batch that was checked against nothing yet. Columns in: the registry's."""
    files = lake.delta.write(REGISTRY.name, rows.select(REGISTRY.names).cast(arrow_schema(REGISTRY)))
    return commit_claims(lake, files, pa.chunked_array([], pa.string()), txn, by_id=by_id)


def append_by_spark(lake: ArrowLake, rows: DataFrame, txn: Txn) -> None:
    """Rows of the registry appended by Spark, under a txn of Delta's."""

    def write() -> None:
        writer = rows.select(*REGISTRY.names).write.format("delta").mode("append")
        writer.option("txnAppId", txn.app_id).option("txnVersion", txn.version).save(lake.delta.path(REGISTRY.name))

    lake.rerun(REGISTRY.name, write)


def merge_rows(lake: ArrowLake, view: str, where: str, txn: Txn) -> int | None:
    """The rows of a view inserted by Spark where their key is free; None where the registry holds the txn."""
    columns = ", ".join(REGISTRY.names)
    values = ", ".join(f"s.{name}" for name in REGISTRY.names)
    sql = (
        f"MERGE INTO delta.`{lake.delta.path('registry')}` t USING {view} s ON t.event_id = s.event_id AND "
        f"t.event_time = s.event_time AND t.bucket = s.bucket AND t.shard = s.shard AND {where} "
        f"WHEN NOT MATCHED THEN INSERT ({columns}) VALUES ({values})"
    )

    def merge() -> int | None:
        lake.spark.conf.set(_TXN_APP, txn.app_id)
        lake.spark.conf.set(_TXN_VERSION, str(txn.version))
        try:
            done = lake.spark.sql(sql).collect()
        finally:
            lake.spark.conf.unset(_TXN_APP)
            lake.spark.conf.unset(_TXN_VERSION)
        return int(done[0]["num_inserted_rows"]) if done else None

    return lake.rerun("registry", merge)
