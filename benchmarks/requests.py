"""The requests of one batch on S3, in their order, and how long a batch waits for them one after the other.

    PYTHONPATH=infra:spark_apps:. .venv/bin/python -m benchmarks.requests --delay 0.03

A steady pipeline in this process, Spark included: no Airflow, and batches only when asked for. The server's proxy
makes each request take `--delay` seconds more and notes when it came. A batch waits for a request as often as the time
in which any was under way holds the delay, however many are sent side by side.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from benchmarks.engine import ENGINE
from benchmarks.store import Place, Request, lake_at
from bootstrap import ROOT, Problem
from clickjoin.config import load
from clickjoin.engine import Engine
from clickjoin.model.ids import MICROS
from clickjoin.spark.session import in_process
from demo.running import write_pipeline

_MILLION = {"PUT": 5.0, "LIST": 5.0, "GET": 0.4, "HEAD": 0.4, "DELETE": 0.0}  # dollars, S3 in us-east-1
_MONTH = 86_400 * 30.4  # seconds
_PIPELINE = "pipelines/requests.yaml"
_ROWS = 400  # queries of a batch; a fifth as many clicks


class Batch(NamedTuple):
    """One batch, or part of a start: seconds, those of its steps, and the requests that were sent in it."""

    seconds: float
    steps: dict[str, float]
    requests: list[Request]

    def rounds(self, delay: float) -> float:
        """Time in which a request was waited for, in delays."""
        waited, until = 0.0, 0.0
        for at in sorted(request.at for request in self.requests):
            waited += max(at + delay - max(at, until), 0.0)
            until = max(until, at + delay)
        return waited / delay if delay else 0.0


class Logs:
    """Two logs that grow by a batch's records when asked."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._next = folder, 0
        for stream in ("queries", "clicks"):
            (folder / stream).mkdir(parents=True)

    def grow(self) -> None:
        """Queries, and a click on each fifth of them."""
        ids = [self._id("q") for _ in range(_ROWS)]
        self._write("queries", [{"event_id": one} for one in ids])
        self._write("clicks", [{"event_id": self._id("c"), "query_id": one} for one in ids[::5]])

    def _id(self, host: str) -> str:
        self._next += 1
        return f"{host}:1:{int(time.time() * MICROS) + self._next % 1000}"

    def _write(self, stream: str, records: Sequence[dict[str, str]]) -> None:
        with (self.folder / stream / "0.jsonl").open("a", encoding="utf-8") as log:
            log.writelines(f"{json.dumps(record)}\n" for record in records)


@contextmanager
def steady(folder: Path, lake: str) -> Iterator[tuple[Engine, Logs]]:
    """An engine on a session of its own, and the logs that it reads."""
    logs, pipeline = Logs(folder / "logs"), folder / _PIPELINE
    write_pipeline(
        pipeline, lake, logs.folder / "queries/*.jsonl", logs.folder / "clicks/*.jsonl",
        registry={"retention": "3d", "bucket": "1h", "shards": 4}, engine=ENGINE,
    )  # fmt: skip
    spark = in_process("2", "1g", s3=lake.startswith("s3:"))
    try:
        yield Engine(spark, load(pipeline)), logs
    finally:
        spark.stop()


def measure(engine: Engine, logs: Logs, take: object, batches: int) -> list[Batch]:
    """Run some batches, a retry's look after each as the DAG has it."""
    done = []
    for _ in range(batches):
        logs.grow()
        take()  # type: ignore[operator]
        begun = time.perf_counter()
        settled = engine.join_once()
        engine.retry_once()
        spent = time.perf_counter() - begun
        if settled is None or settled.metrics["joined"] != _ROWS // 5:
            raise Problem(f"a batch did not join what it should: {settled}")
        steps = {n.removeprefix("seconds_"): float(str(v)) for n, v in settled.metrics.items() if n[:8] == "seconds_"}
        done.append(Batch(spent, steps, take()))  # type: ignore[operator]
    return done


def report(batches: Sequence[Batch], delay: float, whole: bool) -> None:
    """Print the last batch's requests, and the median of all."""
    last = batches[-1]
    for request in sorted(last.requests, key=lambda one: one.at) if whole else ():
        print(f"{1000 * (request.at - last.requests[0].at):8.0f} ms  {request.method:5} {request.path}")
    kinds = Counter(request.method for batch in batches for request in batch.requests)
    each = ", ".join(f"{kind} {count / len(batches):.1f}" for kind, count in sorted(kinds.items()))
    steps = {name: round(median(batch.steps[name] for batch in batches), 2) for name in last.steps}
    print(f"steps: {steps}")
    cost = sum(_MILLION[kind] * count for kind, count in kinds.items()) / len(batches) / 1e6
    print(f"requests a batch: {sum(kinds.values()) / len(batches):.1f} ({each})")
    print(f"at list prices ${cost:.6f} a batch; one a second, day and night: ${cost * _MONTH:.0f} a month")
    print(
        f"seconds a batch: {median(b.seconds for b in batches):.2f}; of them it waits for requests "
        f"{median(b.rounds(delay) for b in batches):.0f} times {delay} s"
    )


def begin(folder: Path, spark_is_there: Any, moments: Any) -> None:
    """Start as a process of the join does, and run a batch; sends when each part was done (`time.monotonic`)."""
    pipeline = load(folder / _PIPELINE)
    spark = in_process("2", "1g", s3=True)
    try:
        spark.range(1).collect()
        spark_is_there.set()
        done = [time.monotonic()]
        engine = Engine(spark, pipeline)
        done.append(time.monotonic())
        if engine.join_once() is None:
            raise Problem("there was nothing to join")
        moments.send([*done, time.monotonic()])
    finally:
        spark.stop()


def start(folder: Path, place: Place, delay: float, whole: bool) -> None:
    """Print what a new process asks for. Errors: Problem where it fails."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    ready = context.Event()
    place.slow(delay)
    process = context.Process(target=begin, args=(folder, ready, theirs))
    process.start()
    ready.wait(120)
    place.sent()
    process.join(300)
    if process.exitcode or not ours.poll():
        raise Problem(f"the new process ended with {process.exitcode}")
    begun, opened, joined = ours.recv()
    sent = place.sent()
    for what, since, until in (("opened", begun, opened), ("first batch", opened, joined)):
        part = Batch(until - since, {}, [one for one in sent if since <= one.at < until])
        for request in sorted(part.requests, key=lambda one: one.at) if whole else ():
            print(f"{1000 * (request.at - since):8.0f} ms  {request.method:5} {request.path}")
        kinds = ", ".join(f"{k} {n}" for k, n in sorted(Counter(one.method for one in part.requests).items()))
        print(f"{what}: {part.seconds:.2f} s, {len(part.requests)} requests ({kinds}), it waits "
              f"{part.rounds(delay):.0f} times {delay} s")  # fmt: skip


def main(arguments: list[str]) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.requests", description="Requests of a batch on S3")
    parser.add_argument("--delay", type=float, default=0.03, help="seconds more for each request (%(default)s)")
    parser.add_argument("--warm", type=int, default=12, help="batches before those that count (%(default)s)")
    parser.add_argument("--batches", type=int, default=10, help="batches that count (%(default)s)")
    parser.add_argument("--all", action="store_true", help="print each request of the last batch, or of the start")
    parser.add_argument("--start", action="store_true", help="those of a new process, in place of a steady one's")
    chosen = parser.parse_args(arguments)
    folder = ROOT / ".run/benchmarks" / f"requests-{os.getpid()}"
    try:
        with lake_at("s3", folder, 0.0 if chosen.start else chosen.delay) as place:
            with steady(folder, place.lake) as (engine, logs):
                measure(engine, logs, place.sent, chosen.warm)
                if not chosen.start:
                    report(measure(engine, logs, place.sent, chosen.batches), chosen.delay, chosen.all)
            if chosen.start:
                logs.grow()
                start(folder, place, chosen.delay, chosen.all)
    except Problem as problem:
        print(f"clickjoin: {problem}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
