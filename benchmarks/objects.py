"""How long a source takes to plan many new objects of a bucket, with few and with many old ones beside them.

    PYTHONPATH=infra:spark_apps:. .venv/bin/python -m benchmarks.objects --new 10000 --old 1000000

A real S3 server on this machine. Old objects lie in folders of dates that are over, and have been planned; new ones in
the folder of today. Each plan is made by a new source, as a new process makes it, from offsets as the journal has them.
Old ones are written into the folder that the server serves, and dated back: its own PUT takes a millisecond each.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from bootstrap import Problem
from clickjoin.config import Files
from clickjoin.model.split import Budget, SourceOffset
from clickjoin.sources.s3.source import S3Source
from demo.store import Store, lake_store

_A_DAY = 1_000  # old objects
_LINE = b'{"event_id": "a:1:1700000000000000"}\n'
_ALL = Budget(10**12, 10**15)
_LOOKBACK = "2d"


@dataclass
class Reader:
    """The logs as a pipeline reads them, and what its journal knows of them."""

    source: Files
    offsets: dict[str, SourceOffset] = field(default_factory=dict)

    def plan(self) -> tuple[int, float, dict[str, int]]:
        """Plan all that is new, as a new process: objects, seconds, requests by kind."""
        source, start = S3Source(self.source), time.monotonic()
        plan = source.plan(self.offsets, _ALL)
        took = time.monotonic() - start
        self.offsets |= {offset.partition: offset for offset in plan.offsets}
        return len(plan.splits), took, source.bucket.requests


def put_new(put: Callable[[str, bytes], object], day: date, first: int, count: int) -> None:
    """Objects of a day, by the server's own PUT."""
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda n: put(f"clicks/dt={day}/{n:08}.jsonl", _LINE), range(first, first + count)))


def lay_old(folder: Path, today: date, count: int) -> None:
    """Objects of the days before the last week, a thousand each, written when their day was over."""
    for start in range(0, count, _A_DAY):
        day = today - timedelta(days=8 + start // _A_DAY)
        at = datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp() + 86400
        place = folder / "clicks" / f"dt={day}"
        place.mkdir(parents=True)
        for n in range(min(_A_DAY, count - start)):
            file = place / f"{n:08}.jsonl"
            file.write_bytes(_LINE)
            os.utime(file, (at, at))


def measure(store: Store, logs: Path, new: int, old: int) -> list[tuple[str, int, float, dict[str, int]]]:
    """What each plan took, by what it had to find."""
    if store.put is None:
        raise Problem("no S3 server", "install Go, which builds one")
    day = datetime.now(UTC).date()
    reader = Reader(
        Files.model_validate({"kind": "files", "path": f"{store.logs}/clicks/dt=*/*.jsonl", "lookback": _LOOKBACK})
    )
    put_new(store.put, day, 0, 1)
    rows = [("the first object", *reader.plan())]
    put_new(store.put, day, 1, new)
    rows.append((f"{new:,} new ones", *reader.plan()))
    lay_old(logs, day, old)
    put_new(store.put, day, new + 1, new)
    rows.append((f"{new:,} new ones beside {old:,} old", *reader.plan()))
    rows.append(("nothing new", *reader.plan()))
    return rows


def main(argv: Sequence[str] | None = None) -> int:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--new", type=int, default=10_000)
    parser.add_argument("--old", type=int, default=100_000)
    arguments = parser.parse_args(argv)
    folder = Path(tempfile.mkdtemp(prefix="clickjoin-objects-"))
    try:
        with lake_store("s3", folder) as store:
            for what, found, took, sent in measure(store, store.folder.parent / "logs", arguments.new, arguments.old):
                print(f"{what:44} {found:>8,} planned in {took:6.2f} s, {sent}", flush=True)
    except Problem as problem:
        print(problem, file=sys.stderr)
        return 2
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
