"""What a batch of per-key processing costs beside few keys and beside many.

    PYTHONPATH=infra:spark_apps:. .venv/bin/python -m benchmarks.processing --keys 10000 1000000

The output of a pipeline of one stream gets an event of each key, and then batches of random keys, which are timed.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.folders import remove
from benchmarks.latency_machine import machine, save
from bootstrap import ROOT
from clickjoin.processing.processing import Processing
from tests.unit.processing_bench import MINUTE, NOON, SECOND, Event, Output

PROCESSORS = {
    "TumblingCounts": {"processor": "clickjoin.processors:TumblingCounts", "args": {"window": "1m"}},
    "SpikesAndDips": {"processor": "clickjoin.processors:SpikesAndDips", "args": {"window": "1m"}},
}
_AT_ONCE = 200_000


def measured(name: str, keys: int, events: int, batches: int, rng: random.Random) -> dict[str, Any]:
    """Seconds of each batch, and bytes a key that table `state` takes on disk after a whole copy."""
    folder = Path(tempfile.mkdtemp(prefix="clickjoin-processing-"))
    out = Output(folder, PROCESSORS[name], batch={"max_events": 1_000_000})
    processing = out.processing()
    for low in range(0, keys, _AT_ONCE):
        out.publish(
            [(f"f{key}", f"k{key}", NOON + key % MINUTE) for key in range(low, min(low + _AT_ONCE, keys))], NOON
        )
        processing.drain(lambda _: None)
    seconds = [_batch(out, processing, batch, keys, events, rng) for batch in range(batches)]
    start = time.perf_counter()
    loaded = out.processing()
    loaded.once()
    size = sum(path.stat().st_size for path in (folder / "lake/shop/process/state").rglob("*.parquet"))
    found = {
        "processor": name, "keys": keys, "seconds": [round(one, 3) for one in seconds],
        "median": round(statistics.median(seconds), 3), "load": round(time.perf_counter() - start, 2),
        "bytes_a_key": round(size / keys, 1),
    }  # fmt: skip
    remove(folder)
    return found


def _batch(out: Output, processing: Processing, batch: int, keys: int, events: int, rng: random.Random) -> float:
    at = NOON + (2 + batch) * SECOND
    new: list[Event] = [(f"{batch}-{nth}", f"k{rng.randrange(keys)}", at) for nth in range(events)]
    out.publish(new, at)
    start = time.perf_counter()
    row = processing.once()
    assert row, "there was a batch to do"
    assert row["events"] == events, row
    return time.perf_counter() - start


def main(arguments: list[str]) -> int:
    """Run it for each processor and number of keys; print, and write JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.processing")
    parser.add_argument("--keys", type=int, nargs="+", default=[10_000, 1_000_000])
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument("--batches", type=int, default=9)
    parser.add_argument("--only", choices=sorted(PROCESSORS), action="append")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks/results/processing.json")
    chosen = parser.parse_args(arguments)
    found = []
    print(f"| processor | keys | seconds a batch of {chosen.events:,} | to the fewest keys | bytes a key | load |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name in chosen.only or PROCESSORS:
        first = 0.0
        for keys in sorted(chosen.keys):
            one = measured(name, keys, chosen.events, chosen.batches, random.Random(1))
            first = first or one["median"]
            ratio = one["median"] / first
            print(
                f"| {name} | {keys:,} | {one['median']} | {ratio:.2f} | {one['bytes_a_key']} | {one['load']} s |",
                flush=True,
            )
            found.append(one)
    save(chosen.out, {"found": found, "machine": machine()})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
