"""What is always replaced in the simulator's process."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any


class _Job:
    def __init__(self, pool: _Pool, work: Callable[[], Any]) -> None:
        self._pool, self._work, self._done, self._value = pool, work, False, None

    def run(self) -> None:
        if not self._done:
            self._value, self._done = self._work(), True

    def result(self) -> Any:
        self._pool.finish()
        return self._value


class _Pool:
    """What threads would do, one after the other, in an order that is drawn."""

    def __init__(self, max_workers: int = 1) -> None:
        self._jobs: list[_Job] = []

    def __enter__(self) -> _Pool:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def submit(self, work: Callable[..., Any], *args: Any) -> _Job:
        self._jobs.append(_Job(self, lambda: work(*args)))
        return self._jobs[-1]

    def finish(self) -> None:
        jobs = list(self._jobs)
        random.shuffle(jobs)
        for job in jobs:
            job.run()


class _JobAhead:
    """What a thread does beside a batch: all of it once the batch has landed, or once it is asked for."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self._work, self._done = work, False
        self._value: Any = None
        self._error: Exception | None = None
        if random.random() < 0.5:
            self.exception()

    def exception(self) -> Exception | None:
        if not self._done:
            self._done = True
            try:
                self._value = self._work()
            except Exception as error:
                self._error = error
        return self._error

    def result(self) -> Any:
        return self._value


class _Ahead:
    def __init__(self, max_workers: int, name: str) -> None:
        pass

    def submit(self, work: Callable[..., Any], *args: Any) -> _JobAhead:
        return _JobAhead(lambda: work(*args))


def replace() -> None:
    """What no schedule can do without."""
    from clickjoin import overlap
    from clickjoin.engines.arrow import claims as claim
    from clickjoin.engines.arrow import insert_new, land_ahead
    from clickjoin.engines.arrow import joining as arrow_join
    from clickjoin.event_store import landing
    from clickjoin.kernel import data_file, join_task, land_task, parquet_rows, resolving, rewrite_task
    from tests.simulator import backups, chain, filters, hearing, local_times, ports, processing, workers

    landing.ThreadPoolExecutor = land_ahead.ThreadPoolExecutor = _Pool  # type: ignore[misc,assignment]
    overlap.ThreadPoolExecutor = _Ahead  # type: ignore[misc,assignment]
    # In kinds of its own, so that the schedules of all others are what they were.
    begin = overlap.Overlap.begin
    overlap.Overlap.begin = lambda self, ctx: (  # type: ignore[method-assign]
        begin(self, ctx) if ctx.pipeline.batch.catch_up_share == 1 else None
    )
    data_file.write = land_task.write = claim.write = workers.write
    resolving.write_each = lambda work: [workers.write(*each) for each in work]
    ports.install()
    chain.install()
    processing.install()
    backups.install()
    hearing.watch()
    local_times.install()
    parquet_rows.scan_by_key = claim.scan_by_key = insert_new.scan_by_key = workers.pick
    filters.install()
    join_task.of_batch, claim.read_columns = workers.of_batch, workers.whole
    rewrite_task.read_file = lambda root, file, schema: workers.whole(root, [file], schema)
    arrow_join.ship_adapter = lambda kind: None
