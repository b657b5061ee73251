"""A backup put back under a Spark session that has known the lake before: batches go on from where it was taken."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from clickjoin.backup.compare import compare
from clickjoin.backup.restore import restore
from clickjoin.backup.take import take
from clickjoin.model.errors import LakeReplaced
from tests.sampled import crossed
from tests.spark.bench import Bench, click, crash_at, query
from tests.spark.count import agrees


def backup(bench: Bench) -> None:
    take(bench.pipeline, bench.folder / "backups", print, wait=5)


def back(bench: Bench) -> Path:
    """Restore the newest backup; returns where the lake before it is."""
    aside = restore(bench.pipeline, bench.folder / "backups", "", print, force=True).aside
    assert aside
    bench.engine = bench.replica("main")
    return Path(aside)


def test_what_was_joined_since_is_joined_again(make: Callable[..., Bench]) -> None:
    bench = make()
    asked = query("q", 0)
    bench.queries(asked)
    bench.clicks(click("a", 1, asked))
    bench.join()
    backup(bench)
    bench.clicks(click("b", 2, asked), click("c", 3, query("late", 0)))
    bench.join()
    asleep = bench.engine
    aside = back(bench)
    assert bench.places() == {"joined": ["a"]}
    bench.clicks(click("d", 4, asked))
    with pytest.raises(LakeReplaced):
        asleep.join_once()
    assert [missing.state for missing in compare(bench.pipeline, aside)] == ["never read"]
    assert bench.join() == {"events_in": 3, "joined": 2, "pending": 1}
    assert bench.places() == {"joined": ["a", "b", "d"], "pending": ["c"]}
    assert list(compare(bench.pipeline, aside)) == []
    assert agrees(bench)


@pytest.mark.parametrize(("table", "after"), crossed(["joined", "pending"], [False, True]))
def test_a_retry_that_was_under_way(make: Callable[..., Bench], table: str, after: bool) -> None:
    """Its plan names a version of `pending` from before the restored log's gap."""
    bench = make()
    asked = query("q", 0)
    bench.clicks(click("a", 1, asked), click("b", 1, query("never", 0)))
    bench.join()
    bench.queries(asked)
    bench.join()
    bench.clock.now += 11
    with crash_at(bench.engine.lake, table, after=after):
        bench.engine.retry_once()
    bench.engine = bench.replica("main")
    backup(bench)
    bench.retry()
    bench.retry(after=30)
    back(bench)
    assert bench.retry()["joined"] == 1
    assert bench.places() == {"joined": ["a"], "pending": ["b"]}


def test_a_source_that_is_gone_meanwhile(make: Callable[..., Bench]) -> None:
    """What was planned at the backup is counted as lost; of what came later only the lake before it knows."""
    bench = make()
    asked = query("q", 0)
    bench.queries(asked)
    bench.clicks(click("a", 1, asked))
    bench.join()
    bench.clicks(click("b", 2, asked))
    with crash_at(bench.engine.lake, "foreign", after=False):
        bench.engine.join_once()
    bench.engine = bench.replica("main")
    backup(bench)
    bench.join()
    bench.clicks(click("c", 3, asked))
    bench.join()
    (bench.folder / "foreign/0.jsonl").rename(bench.folder / "packed-away.jsonl")
    aside = back(bench)
    bench.join()
    assert bench.rows("quarantine", "reason") == [("source-lost",)]
    assert bench.places() == {"joined": ["a"]}
    missing = [(item.event_id.split(":")[0], item.state) for item in compare(bench.pipeline, aside)]
    assert missing == [("b", "never read"), ("c", "never read")]
    (bench.folder / "packed-away.jsonl").rename(bench.folder / "foreign/again.jsonl")
    bench.join()
    assert bench.places() == {"joined": ["a", "b", "c"]}
    assert list(compare(bench.pipeline, aside)) == []
