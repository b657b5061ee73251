"""The last touch of each order by a user and seven days: clickjoin beside DuckDB's ASOF join and a window of Spark SQL.

    PYTHONPATH=infra:spark_apps:. .venv/bin/python -m benchmarks.attribution --orders 1000000 --touches 4000000

Touches and orders of users (Zipf 1.0) over eight days, as JSON lines. Each contender reads the lines and writes both
streams with their records, and the joined rows; the rows of all must be equal. The others make one pass over what is
there: no claim, no batch, no log of commits. Then a batch of `--fresh` orders more, beside all that is there, and
beside a tenth of it.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import yaml
from deltalake import DeltaTable

from benchmarks.engine import ENGINE
from benchmarks.folders import remove
from benchmarks.latency_machine import machine, save
from bootstrap import ROOT

START, DAYS, DAY = 1_772_323_200_000_000, 8, 86_400_000_000  # 2026-03-01, microseconds
AS_PARQUET = "(FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1)"
LINES = (
    "read_csv('{log}', columns={{'payload': 'VARCHAR'}}, delim=E'\\x01', quote='', escape='', header=false, "
    "auto_detect=false)"
)
LAND = """
CREATE TABLE {name} AS SELECT parts[1] AS event_id, make_timestamp(parts[2]::BIGINT) AS event_time, parts[3] AS who,
  payload FROM (SELECT json_extract_string(payload, ['$.id', '$.at', '$.user']) AS parts, payload FROM {lines})
"""
ASOF = """
CREATE TABLE joined AS SELECT o.event_id, o.event_time, t.event_id AS primary_id, t.event_time AS primary_time,
  o.payload AS foreign_record, t.payload AS primary_record
FROM orders o ASOF JOIN touches t ON o.who = t.who AND o.event_time >= t.event_time
WHERE o.event_time - t.event_time <= INTERVAL 7 DAY
"""
WINDOW = """
SELECT event_id, event_time, picked.event_id AS primary_id, picked.event_time AS primary_time,
  payload AS foreign_record, picked.payload AS primary_record
FROM (
  SELECT event_id, event_time, payload, last_value(touch) IGNORE NULLS OVER (
    PARTITION BY who ORDER BY event_time, side ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS picked
  FROM (
    SELECT event_id, event_time, who, payload, 1 AS side, NULL AS touch FROM orders UNION ALL
    SELECT NULL, event_time, who, NULL, 0, struct(event_id, event_time, payload) FROM touches)
) WHERE event_id IS NOT NULL AND event_time - picked.event_time <= INTERVAL 7 DAYS
"""
FILE = {
    "pipeline": "shop", "engine": ENGINE, "primary": {"event_id": "id", "event_time": "at"},
    "foreign": {"event_id": "id", "event_time": "at", "match": {"on": "user", "pick": "last", "within": "7d"}},
    "registry": {"bucket": "6h", "retention": "36500d", "shards": 4}, "limits": {"max_skew": "36500d"},
    "batch": {"max_events": 8_000_000, "max_bytes": "4GB"}, "close": {"max_out_of_orderness": "1s"},
}  # fmt: skip


def times(random: np.random.Generator, count: int, low: int, days: int) -> np.ndarray[Any, Any]:
    """Moments, growing; of two events none is at the same one."""
    return np.sort(START + low + random.choice(days * DAY // 100, count, replace=False) * 100)


def users(random: np.random.Generator, count: int, many: int) -> np.ndarray[Any, Any]:
    """A user for each event, the n-th of them in proportion to 1/n."""
    shares = np.cumsum(1 / np.arange(1, many + 1))
    return np.searchsorted(shares, random.random(count) * shares[-1])


def write(folder: Path, kind: str, at: np.ndarray[Any, Any], who: np.ndarray[Any, Any], first: int = 0) -> None:
    """A log of one stream, a file more in its folder."""
    rows = pa.table({"at": at, "who": who, "n": np.arange(first, first + len(at))})
    (place := folder / kind).mkdir(parents=True, exist_ok=True)
    con = duckdb.connect()
    con.register("made", rows)
    record = f"'{kind[0]}' || n AS id, \"at\", 'u' || who AS \"user\", 'channel ' || n % 7 AS channel"
    con.sql(f"COPY (SELECT {record} FROM made) TO '{place}/{first:09}.jsonl' (FORMAT json)")


def make(folder: Path, orders: int, touches: int, many: int) -> None:
    """The logs, and a touch a day later of a user without orders: by it every order is decided."""
    random = np.random.default_rng(1)
    write(folder, "touches", times(random, touches, 0, DAYS), users(random, touches, many))
    write(folder, "orders", times(random, orders, 50, DAYS), users(random, orders, many))
    write(folder, "touches", np.array([START + (DAYS + 1) * DAY]), np.array([-1]), first=touches)


def by_clickjoin(logs: Path, out: Path) -> str:
    """A drain, in a process of its own; where the joined rows lie."""
    pipeline = {**FILE, "lake": str(out / "lake")}
    for stream, kind in (("primary", "touches"), ("foreign", "orders")):
        pipeline[stream] = {**FILE[stream], "source": {"kind": "files", "path": f"{logs}/{kind}/*.jsonl"}}  # type: ignore[dict-item]
    (out / "shop.yaml").write_text(yaml.safe_dump(pipeline))
    drain(out)
    return f"delta_scan('{out}/lake/shop/joined')"


def drain(out: Path) -> None:
    """Join all that is there. Errors: CalledProcessError with what was said."""
    command = [sys.executable, "-m", "clickjoin.cli", "drain", "--config", str(out / "shop.yaml"), "--no-check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)
    if done.returncode:
        raise SystemExit(f"drain ended with {done.returncode}: {done.stdout}{done.stderr}")


def by_duckdb(logs: Path, out: Path) -> str:
    """Two threads, one pass."""
    con = duckdb.connect()
    con.sql("SET threads = 2")
    for name in ("touches", "orders"):
        con.sql(LAND.format(name=name, lines=LINES.format(log=f"{logs}/{name}/*.jsonl")))
    con.sql(ASOF)
    for name in ("touches", "orders", "joined"):
        con.sql(f"COPY {name} TO '{out}/{name}.parquet' {AS_PARQUET}")
    return f"'{out}/joined.parquet'"


def by_spark(logs: Path, out: Path) -> str:
    """Spark SQL: both streams by key and time, and of each order the last touch before it."""
    from clickjoin.spark.session import in_process

    spark = in_process(cores="2", memory="6g")
    for name in ("touches", "orders"):
        rows = spark.read.text(f"{logs}/{name}").selectExpr(
            "value AS payload", "from_json(value, 'id STRING, at LONG, user STRING') AS r"
        )
        rows = rows.selectExpr("r.id AS event_id", "timestamp_micros(r.at) AS event_time", "r.user AS who", "payload")
        rows.write.format("delta").save(f"{out}/{name}")
        spark.read.format("delta").load(f"{out}/{name}").createOrReplaceTempView(name)
    spark.sql(WINDOW).write.format("delta").save(f"{out}/joined")
    return f"delta_scan('{out}/joined')"


def rows_of(place: str) -> tuple[Any, ...]:
    """How many rows, and a digest of who was joined with whom: of rows in any order."""
    con = duckdb.connect()
    if place.startswith("delta_scan"):
        con.register("found", DeltaTable(place.split("'")[1]).to_pyarrow_dataset())
        place = "found"
    asked = "count(*), bit_xor(hash(event_id, primary_id)), count(DISTINCT event_id)"
    return tuple(con.sql(f"SELECT {asked} FROM {place}").fetchall()[0])


CONTENDERS: dict[str, Callable[[Path, Path], str]] = {
    "clickjoin": by_clickjoin, "DuckDB, ASOF join": by_duckdb, "Spark SQL, last_value": by_spark,
}  # fmt: skip


def compared(chosen: argparse.Namespace, folder: Path) -> dict[str, float]:
    """Seconds of each contender. Errors: SystemExit where their rows differ."""
    make(folder / "logs", chosen.orders, chosen.touches, chosen.users)
    seconds, rows = {}, {}
    for name, run in CONTENDERS.items():
        (out := folder / name.split(",")[0].replace(" ", "")).mkdir()
        begun = time.perf_counter()
        place = run(folder / "logs", out)
        seconds[name] = round(time.perf_counter() - begun, 2)
        rows[name] = rows_of(place)
        print(f"{name}: {seconds[name]} s, {rows[name][0]:,} rows", flush=True)
    if len(set(rows.values())) > 1:
        raise SystemExit(f"the rows differ, so there are no figures: {rows}")
    return seconds


def beside(chosen: argparse.Namespace, folder: Path) -> dict[str, float]:
    """Seconds of a drain of fresh orders beside touches of seven days, after `clickjoin gc`: beside all and a tenth."""
    found = {}
    for touches in (chosen.touches // 10, chosen.touches):
        out, random = folder / f"beside{touches}", np.random.default_rng(2)
        make(out / "logs", 1_000, touches, chosen.users)
        by_clickjoin(out / "logs", out)
        run = [sys.executable, "-m", "clickjoin.cli", "gc", "--config", str(out / "shop.yaml")]
        subprocess.run(run, capture_output=True, check=True)
        write(
            out / "logs",
            "orders",
            times(random, chosen.fresh, DAYS * DAY, 1),
            users(random, chosen.fresh, chosen.users),
            10**8,
        )
        begun = time.perf_counter()
        drain(out)
        found[f"{touches:,}"] = round(time.perf_counter() - begun, 2)
        print(f"{chosen.fresh:,} fresh orders beside {touches:,} touches: {found[f'{touches:,}']} s", flush=True)
    return found


def main(arguments: list[str]) -> int:
    """Make, run, compare, print; figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.attribution", description="Last touch, side by side")
    parser.add_argument("--orders", type=int, default=1_000_000)
    parser.add_argument("--touches", type=int, default=4_000_000)
    parser.add_argument("--users", type=int, default=100_000)
    parser.add_argument("--fresh", type=int, default=1_000)
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks/results/attribution.json")
    chosen, about = parser.parse_args(arguments), machine()
    folder = Path(tempfile.mkdtemp(prefix="clickjoin-attribution-"))
    try:
        seconds, fresh = compared(chosen, folder), beside(chosen, folder)
    finally:
        remove(folder)
    print(f"\n{chosen.orders:,} orders, {chosen.touches:,} touches of {chosen.users:,} users\n")
    print("| | seconds | clickjoin takes |\n| --- | --- | --- |")
    for name, took in seconds.items():
        print(f"| {name} | {took} | {seconds['clickjoin'] / took:.2f} times |")
    few, many = fresh.values()
    print(f"\n{chosen.fresh:,} fresh orders beside ten times the touches: {many / few:.2f} times")
    save(chosen.out, {**vars(chosen), "out": "", "seconds": seconds, "beside": fresh, "machine": about})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
