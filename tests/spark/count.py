"""Each event in one place, counted from the tables' rows by no code of ours; `account` as well where all cases run."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime

from clickjoin.report.accounts import kept_since
from clickjoin.retry.pending import open_rows
from tests.sampled import FULL
from tests.spark.bench import Bench

KEY = ("event_id", "event_time")


def agrees(bench: Bench) -> bool:
    """Whether every event that has landed is somewhere, and no output row is there twice or of no event.

    The same is said by `account`, which takes seconds: tests of its own try it, and `make matrix` does beside this.
    """
    delta = bench.engine.lake.delta
    since = kept_since(bench.pipeline, bench.engine.lake, datetime.fromtimestamp(bench.clock.now, UTC))
    landed, outputs = set(bench.rows("foreign", *KEY)), Counter(bench.rows("joined", *KEY))
    places = {row for name in ("filtered", "unjoinable", "expired") for row in bench.rows(name, *KEY)}
    places |= {row[:2] for row in bench.rows("forgotten", *KEY, "stream") if row[2] == "foreign"}
    places |= {(row["event_id"], row["event_time"]) for row in open_rows(delta)}
    doubled = {row for row, n in outputs.items() if n > 1 or (row not in landed and row[1] >= since)}
    agreed = not doubled and landed <= places | outputs.keys()
    assert not FULL or bench.accounts().get("agree", False) is agreed
    return agreed
