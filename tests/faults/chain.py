"""Queries, clicks and conversions through two pipelines, each of whose processes is killed at random; then counted.

    make chain-kills CLICKS=3000000 KILLS=20

A third of the clicks has a conversion, a tenth of these twice. The upstream pipeline joins clicks to queries, the
downstream one conversions to its output. Exits 1 unless each conversion is there once, with its click and that one's
query.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

import yaml
from deltalake import DeltaTable

from clickjoin.generate import Traffic, generate
from tests.faults.commands import Commands
from tests.oracle import Verdict, examine

_RETRY = {"first_delay": "5s", "max_delay": "30s", "max_age": "2h", "max_attempts": 1000}
_BATCH = {"max_events": 150_000, "trigger_interval": "200ms"}
_STREAM = {"event_id": "event_id", "event_time": "embedded"}
_LATER = 5_000_000  # microseconds from a click to its conversion


class Chain:
    """Logs, two pipelines, and a process of each."""

    def __init__(self, folder: Path, clicks: int, seed: int) -> None:
        self.folder, self.lake = folder, folder / "lake"
        generate(folder, Traffic(clicks=clicks, queries=max(clicks // 3, 1), files=8, seed=seed))
        self.wanted = dict(conversions(folder))
        configs = {"clicks": self._pipeline("clicks", "query_id", files(folder, "queries")),
                   "sales": self._pipeline("sales", "click_id", {"kind": "pipeline", "name": "clicks"})}  # fmt: skip
        self.commands = Commands(folder, {name: ["--config", str(file)] for name, file in configs.items()})

    def _pipeline(self, name: str, names: str, primary: dict[str, str]) -> Path:
        foreign = {"source": files(self.folder, "clicks" if name == "clicks" else "conversions"), "primary_id": names}
        config = {
            "pipeline": name, "engine": "arrow", "lake": str(self.lake), "batch": _BATCH, "retry": _RETRY,
            "primary": _STREAM | {"source": primary}, "foreign": _STREAM | foreign | {"primary_time": "embedded"},
        }  # fmt: skip
        file = self.folder / f"{name}.yaml"
        file.write_text(yaml.safe_dump(config))
        return file

    def rows(self, name: str, *columns: str) -> Iterator[tuple[Any, ...]]:
        """Rows of a pipeline's output."""
        for batch in DeltaTable(self.lake / name / "joined").to_pyarrow_dataset().to_batches(columns=list(columns)):
            yield from zip(*(batch[column].to_pylist() for column in columns), strict=True)

    def count(self, name: str) -> int:
        """How many rows there are by the log."""
        place = str(self.lake / name / "joined")
        return DeltaTable(place).count() if DeltaTable.is_deltatable(place) else 0


def files(folder: Path, stream: str) -> dict[str, str]:
    """The source of a stream."""
    return {"kind": "files", "path": f"{folder}/{stream}/*.jsonl"}


def conversions(folder: Path) -> Iterator[tuple[str, str]]:
    """Write conversions of a third of the clicks, a tenth of them twice; the id of each, and its click's."""
    (folder / "conversions").mkdir()
    seen: set[str] = set()
    for log in sorted((folder / "clicks").glob("*.jsonl")):
        with log.open(encoding="utf-8") as lines, (folder / "conversions" / log.name).open("w") as out:
            for line in lines:
                click = json.loads(line)["event_id"]
                if click in seen or crc32(click.encode()) % 3:
                    continue
                seen.add(click)
                host, process, micros = click.split(":")
                made = {"event_id": f"{host}:{process}7:{int(micros) + _LATER}", "click_id": click}
                out.write(f"{json.dumps(made)}\n" * (2 if len(seen) % 10 == 0 else 1))
                yield made["event_id"], click


def disturbed(chain: Chain, kills: int, rng: random.Random) -> Counter[str]:
    """Run both, and kill one after the other at random; how often each."""
    with chain.commands.all_running():
        for name, killed in chain.commands.killed(kills, rng):
            joined = {one: chain.count(one) for one in chain.commands.options}
            print(
                f"kill {killed.total()}: {name}; joined {joined['clicks']:,}, conversions {joined['sales']:,}",
                flush=True,
            )
    return killed


def faults(chain: Chain, clicks: Verdict) -> Iterator[str]:
    """What is wrong, a sentence each."""
    if not clicks.ok or clicks.joined != clicks.clicks:
        yield f"clicks: {clicks.text()}"
    queries = dict(chain.rows("clicks", "event_id", "primary_id"))
    found: Counter[str] = Counter()
    wrong = []
    for event, click, record in chain.rows("sales", "event_id", "primary_id", "primary_record"):
        found[event] += 1
        row = json.loads(record)
        given = (click, row["event_id"], row["foreign_record"]["event_id"], row["primary_record"]["event_id"])
        if given != (chain.wanted.get(event),) * 3 + (queries[click],):
            wrong.append(event)
    doubled = [event for event, count in found.items() if count > 1]
    for what, ids in (("twice", doubled), ("missing", chain.wanted.keys() - found.keys()),
                      ("of no click", found.keys() - chain.wanted.keys()), ("wrong", wrong)):  # fmt: skip
        if ids:
            yield f"{len(ids):,} conversions are {what}, such as {min(ids)}"


def main() -> int:
    """Run it; 0 if every conversion is there once, with its click and its query."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.chain", description=__doc__)
    parser.add_argument("--clicks", type=int, default=3_000_000)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="clickjoin-chain-") as name:
        chain = Chain(Path(name), chosen.clicks, chosen.seed)
        begun = time.monotonic()
        killed = disturbed(chain, chosen.kills, random.Random(chosen.seed))
        sums = {one: chain.commands.drain(one)["accounts"]["agree"] for one in chain.commands.options}
        folder = Path(name)
        clicks = examine(str(folder / "clicks/*"), str(folder / "queries/*"), chain.lake / "clicks")
        wrong = [*faults(chain, clicks), *(f"{one}: the sums do not agree" for one, agree in sums.items() if not agree)]
        print(f"{clicks.joined:,} clicks met their queries and {chain.count('sales'):,} of {len(chain.wanted):,} "
              f"conversions those clicks, in {time.monotonic() - begun:.0f} s; killed: {dict(killed)}")  # fmt: skip
    print("\n".join(wrong) or "each conversion once, with its click and that one's query")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
