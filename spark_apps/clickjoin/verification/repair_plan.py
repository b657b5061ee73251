"""What recovery shall do about each fault, with all that it needs for it: rows of table `findings`."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from clickjoin.engines.extents import bucket_sql
from clickjoin.model.ids import EVENT_KEY
from clickjoin.schemas import FINDINGS
from clickjoin.spark.rows import first_of_key
from clickjoin.verification.id_places import output_rows
from clickjoin.verification.kinds import FAULTS
from clickjoin.verification.snapshot import Reading

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from clickjoin.config import Pipeline

_AGAIN, _CLAIM, _REMOVE = ("lost", "claim_without_output"), ("output_without_claim",), ("doubled",)
_FORGOTTEN = ("forgotten_without_claim",)
_NO_RECORD = "its record is not in table `foreign` any more"
_ON_REQUEST = "the rows too many are taken out only on request (--remove-doubles)"
_BY_HAND = "nothing that a program should decide: see docs/verification.md"


def prescribe(pipeline: Pipeline, reading: Reading, rows: DataFrame, remove_doubles: bool) -> DataFrame:
    """Rows of `findings`, without run and at. Columns in: kind, event_id, event_time, shard."""
    rows = rows.withColumn("bucket", F.expr(bucket_sql("event_time", int(pipeline.registry.bucket))))
    rest = [kind for kind in FAULTS if kind not in (*_AGAIN, *_CLAIM, *_REMOVE, *_FORGOTTEN)]
    parts = [
        _again(reading, rows.where(F.col("kind").isin(*_AGAIN))),
        _claim(reading, rows.where(F.col("kind").isin(*_CLAIM))),
        _claim_forgotten(pipeline, rows.where(F.col("kind").isin(*_FORGOTTEN))),
        _plain(rows.where(F.col("kind").isin(*_REMOVE)), "remove" if remove_doubles else None, _ON_REQUEST),
        _plain(rows.where(F.col("kind").isin(*rest)), None, _BY_HAND),
    ]
    return reduce(lambda left, right: left.unionAll(right), parts)


def _again(reading: Reading, rows: DataFrame) -> DataFrame:
    """Events to dispatch again: the claim that goes first, if there is one, and the record as it landed first."""
    claims = reading.rows["registry"].select(*EVENT_KEY, "token")
    landed = reading.rows["foreign"].join(rows.select(*EVENT_KEY), list(EVENT_KEY), "left_semi")
    records = first_of_key(landed, "landed_at", "replica", "source_partition", "offset").select(
        *EVENT_KEY, "primary_id", "primary_time", "payload"
    )
    whole = rows.join(claims, list(EVENT_KEY), "left").join(records, list(EVENT_KEY), "left")
    there = F.col("payload").isNotNull()
    known = {name: F.col(name) for name in ("token", "primary_id", "primary_time", "payload")}
    return _shaped(
        whole, known | {"action": F.when(there, F.lit("again")), "detail": F.when(~there, F.lit(_NO_RECORD))}
    )


def _claim(reading: Reading, rows: DataFrame) -> DataFrame:
    """Events to give their claim back: that of their row; of a row in `joined`, if there are several."""
    found = output_rows(reading).join(rows.select(*EVENT_KEY), list(EVENT_KEY), "left_semi")
    first = first_of_key(found, F.col("outcome") != "joined", "token").select(*EVENT_KEY, "token", "outcome")
    known = {"token": F.col("token"), "outcome": F.col("outcome"), "action": F.lit("claim")}
    return _shaped(rows.join(first, list(EVENT_KEY)), known)


def _claim_forgotten(pipeline: Pipeline, rows: DataFrame) -> DataFrame:
    """Events that were forgotten, to get a claim: without one, what is read again would wait, and be given up."""
    known = {"token": f"{pipeline.pipeline}/forget", "outcome": "forgotten", "action": "claim"}
    return _shaped(rows, {name: F.lit(value) for name, value in known.items()})


def _plain(rows: DataFrame, action: str | None, otherwise: str) -> DataFrame:
    return _shaped(rows, {"action": F.lit(action), "detail": F.lit(None if action else otherwise)})


def _shaped(rows: DataFrame, known: dict[str, Column]) -> DataFrame:
    """All columns of `findings` but run and at, in order; null where nothing is known."""
    given = {name: F.col(name) for name in (*EVENT_KEY, "bucket", "shard", "kind")} | known
    return rows.select(
        *[
            given.get(column.name, F.lit(None)).cast(column.type).alias(column.name)
            for column in FINDINGS.columns
            if column.name not in ("run", "at")
        ]
    )
