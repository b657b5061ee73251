"""Those who run q20. Each reads the logs of a Work and fills a Delta table, or a folder of Parquet; returns its path.

All carry both records whole.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import yaml
from pyspark.sql import functions as F

from benchmarks.engine import ENGINE
from benchmarks.flink.warm import STATES, Flink
from benchmarks.nexmark.adapter import CATEGORY
from benchmarks.throughput.contenders import tell
from benchmarks.throughput.work import Work
from clickjoin.config import load
from clickjoin.engine import Engine

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

AUCTION, BID = "id STRING, category INT", "id STRING, auction STRING, date_time BIGINT"
# As Nexmark sets Flink up, except that a checkpoint is made every 10 s, not every 3 minutes.
SETTINGS = {
    "table.exec.mini-batch.enabled": "true",
    "table.exec.mini-batch.allow-latency": "2 s",
    "table.exec.mini-batch.size": "5000",
}
TABLES = """
CREATE TABLE auction (
  id BIGINT, item_name STRING, description STRING, initial_bid BIGINT, reserve BIGINT, date_time BIGINT,
  expires BIGINT, seller BIGINT, category BIGINT, extra STRING
) WITH ('connector' = 'filesystem', 'path' = 'file://{logs}/auctions', 'format' = 'json');
CREATE TABLE bid (
  id BIGINT, auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, date_time BIGINT, extra STRING
) WITH ('connector' = 'filesystem', 'path' = 'file://{logs}/bids', 'format' = 'json');
CREATE TABLE joined (
  event_id STRING, primary_id STRING, bidder BIGINT, price BIGINT, channel STRING, url STRING, bid_time BIGINT,
  bid_extra STRING, item_name STRING, description STRING, initial_bid BIGINT, reserve BIGINT, auction_time BIGINT,
  expires BIGINT, seller BIGINT, category BIGINT, auction_extra STRING
) WITH ('connector' = 'filesystem', 'path' = 'file://{out}', 'format' = 'parquet')
"""
Q20 = f"""
INSERT INTO joined
SELECT CAST(B.id AS STRING), CAST(B.auction AS STRING), B.bidder, B.price, B.channel, B.url, B.date_time, B.extra,
  A.item_name, A.description, A.initial_bid, A.reserve, A.date_time, A.expires, A.seller, A.category, A.extra
FROM bid B JOIN auction A ON B.auction = A.id WHERE A.category = {CATEGORY}
"""


def plain(spark: SparkSession, work: Work, out: Path) -> Path:
    """Batch join and append: no state, no guarantee."""
    auctions = _lines(spark, work, "auctions", AUCTION).where(F.col("r.category") == CATEGORY)
    auctions = auctions.select(F.col("r.id").alias("primary_id"), F.col("value").alias("auction"))
    bids = _lines(spark, work, "bids", BID).select(
        F.col("r.id").alias("event_id"), F.col("r.auction").alias("primary_id"),
        F.timestamp_millis("r.date_time").alias("event_time"), F.col("value").alias("bid"),
    )  # fmt: skip
    bids.join(auctions, "primary_id").write.format("delta").mode("append").save(str(out / "joined"))
    return out / "joined"


def clickjoin(spark: SparkSession, work: Work, out: Path) -> Path:
    """This project: auctions are primary, and looked for in the hour before a bid, which does not say when."""
    pipeline = {
        "pipeline": "q20", "engine": ENGINE, "lake": str(out / "lake"),
        "primary": {"source": {"kind": "files", "path": work.glob("auctions")},
                    "event_id": "id", "event_time": "date_time"},
        "foreign": {"source": {"kind": "files", "path": work.glob("bids")}, "event_id": "id", "event_time": "as_of",
                    "primary_id": "auction", "primary_time": {"lookback": "1h"}},
        "registry": {"retention": "3d", "bucket": "1h", "shards": 4},
        "retry": {"first_delay": "1h"},  # bids on auctions that never come: none falls due
        "batch": {"max_events": 2_000_000, "max_bytes": "512MB", "lease": "60s"},
        "adapter": "benchmarks.nexmark.adapter:Category",
    }  # fmt: skip
    out.mkdir(parents=True, exist_ok=True)
    (out / "q20.yaml").write_text(yaml.safe_dump(pipeline, sort_keys=False), encoding="utf-8")
    Engine(spark, load(out / "q20.yaml")).drain(tell)
    return out / "lake/q20/joined"


def flink(warm: Flink, work: Work, out: Path) -> Path:
    """Flink SQL with state in RocksDB: the query as Nexmark has it, out to Parquet."""
    before = TABLES.format(logs=work.folder, out=out / "joined").split(";")
    warm.run(before, Q20, STATES["rocksdb"] | SETTINGS, out)
    return out / "joined"


def _lines(spark: SparkSession, work: Work, stream: str, schema: str) -> DataFrame:
    return spark.read.text(work.glob(stream)).select("value", F.from_json("value", schema).alias("r"))
