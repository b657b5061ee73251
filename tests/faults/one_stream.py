"""Two replicas deduplicate one stream beside many claims, and are killed at random while it grows; then counted.

    make stream-kills IDS=100000000 KILLS=30

The registry holds IDS random ids, of 27 days, before it begins. Of each 10,000 lines that come then 60 hold an id from
anywhere among those, and 60 one that came in an earlier file. Exits 1 unless the output holds every fresh id once, and
no other.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from deltalake import DeltaTable

from benchmarks.folders import remove
from benchmarks.one_stream.batches import Batches, write_log
from benchmarks.one_stream.product import Window
from clickjoin.spark.session import in_process
from tests.faults.commands import Commands

_EVERY, _LEFT = 3.0, 300.0  # seconds: from one file to the next; until both have read all once no more come
_AGAIN = 60
_FIRST = "first"  # what the window itself has published


class Feed(threading.Thread):
    """Writes a log every few seconds, in its place by a rename, until it is asked to end."""

    def __init__(self, folder: Path, batches: Batches, rng: random.Random) -> None:
        super().__init__()
        self.fresh: set[str] = set()
        self.lines = self.known = 0
        self.is_whole = False
        self._folder, self._batches, self._rng, self._ended = folder, batches, rng, threading.Event()

    def run(self) -> None:
        """See Thread."""
        while not self._ended.wait(_EVERY):
            again = self._rng.sample(sorted(self.fresh), min(_AGAIN, len(self.fresh)))
            fresh, known = self._batches.apart()
            ids = [*fresh, *known, *again]
            self._rng.shuffle(ids)
            aside = self._folder / "next"
            write_log(aside, ids, datetime.now(UTC))
            aside.rename(self._folder / f"logs/{self.lines}.jsonl")
            self.fresh |= set(fresh)
            self.known += len(known)
            self.lines += len(ids)
        self.is_whole = True

    def end(self) -> None:
        """Write no more."""
        self._ended.set()
        self.join()


def filled(folder: Path, count: int) -> Window:
    """A lake with so many claims, made now."""
    spark = in_process(cores="2", memory="2g")
    try:
        window = Window(spark, folder, count, datetime.now(UTC))
        print(f"{count:,} ids claimed within {window.filled_in:.0f} s", flush=True)
        return window
    finally:
        spark.stop()


def published(folder: Path) -> Counter[str]:
    """How often each id is in the output, by its Delta log and files."""
    table = DeltaTable(folder / "lake/messages/deduplicated").to_pyarrow_dataset()
    return Counter(table.to_table(columns=["event_id"])["event_id"].to_pylist())


def landed(folder: Path, replica: str) -> int:
    """Lines that a replica has settled, by its metrics."""
    table = DeltaTable(folder / "lake/messages/metrics").to_pyarrow_table(columns=["replica", "events_in"])
    return sum(row["events_in"] for row in table.to_pylist() if row["replica"] == replica)


def faults(found: Counter[str], feed: Feed) -> Iterator[str]:
    """What is wrong, a sentence each."""
    found.pop(_FIRST, None)
    if not feed.is_whole:
        yield "the logs ended before the kills did"
    for what, ids in (("twice", {one for one, count in found.items() if count > 1}),
                      ("missing", feed.fresh - found.keys()), ("repeats", found.keys() - feed.fresh)):  # fmt: skip
        if ids:
            yield f"{len(ids):,} ids are {what}, such as {min(ids)}"


def main() -> int:
    """Run it; 0 if each fresh id is there once and no repeat is."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.one_stream", description=__doc__)
    parser.add_argument("--ids", type=int, default=100_000_000)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="clickjoin-stream-"))
    try:
        return counted(root / "window", chosen.ids, chosen.kills, random.Random(chosen.seed))
    finally:
        remove(root)


def counted(folder: Path, count: int, kills: int, rng: random.Random) -> int:
    """Fill, disturb, let both read all, count."""
    window = filled(folder, count)
    commands = Commands(folder, {name: ["--config", str(window.file), "--replica", name] for name in ("a", "b")})
    feed = Feed(folder, window.batches, rng)
    feed.start()
    try:
        with commands.all_running():
            for name, killed in commands.killed(kills, rng):
                print(f"kill {killed.total()}: {name}; published {published(folder).total():,}", flush=True)
            feed.end()
            late = time.monotonic() + _LEFT
            while min(landed(folder, name) for name in commands.options) < feed.lines and time.monotonic() < late:
                time.sleep(1)
    finally:
        feed.end()
    found = published(folder)
    wrong = list(faults(found, feed))
    print(f"{feed.lines:,} lines, {feed.known:,} of them of the {count:,} ids before: {found.total():,} published "
          f"of {len(feed.fresh):,} fresh ids; killed: {dict(killed)}")  # fmt: skip
    print("\n".join(wrong) or "each fresh id once, and no other")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
