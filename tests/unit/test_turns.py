"""Commits by one session of Spark: appends go side by side, and nothing runs beside a transaction in its settings."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from clickjoin.engines.spark.commits import _Turns

WAIT = 20


def test_appends_go_side_by_side() -> None:
    turns, both = _Turns(), threading.Barrier(2)

    def append() -> None:
        with turns.beside():
            both.wait(WAIT)  # broken where one has to wait for the other

    with ThreadPoolExecutor() as pool:
        for done in [pool.submit(append) for _ in range(2)]:
            done.result(WAIT)


def test_nothing_runs_beside_a_transaction() -> None:
    turns, seen = _Turns(), list[str]()
    begun, goes_on = threading.Event(), threading.Event()

    def merge() -> None:
        with turns.alone():
            begun.set()
            goes_on.wait(WAIT)
            seen.append("merged")

    def other(name: str) -> None:
        begun.wait(WAIT)
        with turns.alone() if name == "merge" else turns.beside():
            seen.append(name)

    with ThreadPoolExecutor() as pool:
        runs = [pool.submit(merge), pool.submit(other, "append"), pool.submit(other, "merge")]
        begun.wait(WAIT)
        assert seen == []
        goes_on.set()
        for run in runs:
            run.result(WAIT)
    assert seen[0] == "merged"
    assert sorted(seen[1:]) == ["append", "merge"]


def test_a_merge_waits_for_appends() -> None:
    turns, seen, begun = _Turns(), list[str](), threading.Event()

    def merge() -> None:
        begun.set()
        with turns.alone():
            seen.append("merged")

    with ThreadPoolExecutor() as pool:
        with turns.beside():
            run = pool.submit(merge)
            begun.wait(WAIT)
            seen.append("appended")
        run.result(WAIT)
    assert seen == ["appended", "merged"]
