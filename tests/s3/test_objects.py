"""Objects on a real S3 server that are written again, deleted or put back; large ones go in parts."""

from __future__ import annotations

import gzip
import time

import pytest

from clickjoin.model.errors import SourceMoved
from clickjoin.model.split import Budget
from tests.s3.buckets import BucketFeed
from tests.unit.sources_bench import events, numbers

pytestmark = pytest.mark.usefixtures("environment")
PART = Budget(10**9, 4 << 20)


def test_written_again_between_plan_and_read(feed: BucketFeed, name: str) -> None:
    key = f"{name}/dt=1/a.jsonl"
    feed.put(key, events(0, 5))
    plan = feed.plan()
    feed.put(key, events(0, 9))
    assert feed.source.lost(plan.splits) == {}  # nobody has looked
    with pytest.raises(SourceMoved, match=r"dt=1/a\.jsonl: the object was written again since it was planned"):
        feed.read(plan.splits)
    (reason,) = feed.source.lost(plan.splits).values()
    assert reason.endswith("a.jsonl are gone: the object was written again, and what it holds now is read")
    (row,) = feed.read(plan.splits)
    assert (row["reason"], row["offset"], row["length"]) == ("source-lost", 0, len(events(0, 5)))
    assert feed.step() == list(range(9))


def test_deleted_and_put_back(feed: BucketFeed, name: str) -> None:
    key = f"{name}/dt=1/a.jsonl.gz"
    feed.put(key, gzip.compress(events(0, 5), mtime=0))
    plan = feed.plan()
    feed.delete(key)
    feed.restart()  # who takes up a plan that it has not made looks first
    assert feed.source.lost(plan.splits)
    assert [row["reason"] for row in feed.read(plan.splits)] == ["source-lost"]
    assert feed.step() == []
    time.sleep(1.1)  # a store tells times of last write by the second
    feed.put(key, gzip.compress(events(0, 5), mtime=0))
    assert feed.step() == list(range(5))


def test_large_objects_go_in_parts(feed: BucketFeed, name: str) -> None:
    feed.put(f"{name}/dt=1/a.jsonl", events(0, 300_000))
    feed.put(f"{name}/dt=2/b.jsonl", events(300_000, 300_003))
    found, steps = list[int](), 0
    while (part := feed.plan(PART)).splits:
        steps += 1
        found += numbers(feed.read(part.splits, tasks=3))
        feed.restart()
    assert found == list(range(300_003))
    assert steps == 3


def test_written_again_when_half_was_read(feed: BucketFeed, name: str) -> None:
    feed.put(f"{name}/dt=1/a.jsonl", events(0, 300_000))
    assert 0 < len(feed.step(PART)) < 200_000
    feed.put(f"{name}/dt=1/a.jsonl", events(0, 7))
    feed.restart()
    plan = feed.plan()
    assert [problem.kind for problem in plan.problems] == ["rewritten"]
    assert numbers(feed.read(plan.splits)) == list(range(7))
    assert feed.step() == []


def test_deleted_when_half_was_read(feed: BucketFeed, name: str) -> None:
    feed.put(f"{name}/dt=1/a.jsonl", events(0, 300_000))
    first = feed.plan(PART)
    feed.delete(f"{name}/dt=1/a.jsonl")
    plan = feed.plan(PART)
    assert not plan.splits
    (problem,) = plan.problems
    left = len(events(0, 300_000)) - first.splits[0].bytes
    assert (problem.kind, problem.length) == ("lost-tail", left)
    assert "a.jsonl: the object is gone since it was planned" in problem.detail
    assert not feed.plan(PART).problems
