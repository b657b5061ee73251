"""Every named interleaving on real Delta, forced by barriers: what the simulator's model of it is checked against."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

from clickjoin.engines.arrow import ArrowLake, ArrowTables
from clickjoin.schemas import REGISTRY
from clickjoin.spark.session import configured, tune_codegen
from tests.sampled import some
from tests.simulator.cases import CASES, Case
from tests.simulator.matrix import perform, reason, seen

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyspark.sql import DataFrame, SparkSession

_SPARKS = ("insert", "append")
_PATIENCE = 60.0


def _gate(folder: Path) -> Callable[[DataFrame], DataFrame]:
    """Holds a job that reads these rows, from when it asks for them until a file is there."""
    reached, go = str(folder / "reached"), str(folder / "go")

    def hold(value):  # without hints: Spark reads them as a wish for Arrow
        import pathlib
        import time

        pathlib.Path(reached).touch()
        end = time.monotonic() + 60
        while not pathlib.Path(go).exists():
            if time.monotonic() > end:
                raise TimeoutError("the second writer was not done in 60 s")
            time.sleep(0.01)
        return value

    # One task: two of them would hold both cores, and leave the second writer none to work on.
    return lambda rows: rows.coalesce(1).withColumn("event_id", F.udf(hold)("event_id"))


class _Held:
    """A delta-rs table handle that lets another go first, once, just before it commits."""

    def __init__(self, table: DeltaTable, first: Callable[[], None], refused: list[str]) -> None:
        self.table, self._first, self._refused = table, first, refused

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.table, name)
        if name == "optimize":
            return _Held(found, self._first, self._refused)
        return self._late(found) if name in ("create_write_transaction", "delete", "compact") else found

    def _late(self, commit: Callable[..., Any]) -> Callable[..., Any]:
        def late(*args: Any, **more: Any) -> Any:
            self._first()
            try:
                return commit(*args, **more)
            except Exception as error:
                self._refused.append(reason(error))
                raise

        return late


def _spark(lake: ArrowLake, other: ArrowLake, case: Case, folder: Path, refused: list[str]) -> Any:
    """`first` in a thread, held by its rows; `second` meanwhile."""
    lake.sleep = lambda _: refused.append(reason(sys.exc_info()[1] or Exception()))
    with ThreadPoolExecutor(1) as pool:
        job = pool.submit(perform, lake, case.first, _gate(folder))
        try:
            end = time.monotonic() + _PATIENCE
            while not ((folder / "reached").exists() or job.done()) and time.monotonic() < end:
                time.sleep(0.01)
            assert (folder / "reached").exists() or job.result(), "the first writer never asked for its rows"
            if case.second:
                perform(other, case.second)
        finally:
            (folder / "go").touch()
        return job.result()


def _light(lake: ArrowLake, other: ArrowLake, case: Case, patch: pytest.MonkeyPatch, refused: list[str]) -> Any:
    """`first` by delta-rs, held by its handle; `second` from within."""
    left = [case.second] if case.second else []
    opened = ArrowTables._opened  # by which reads and commits alike come to a handle

    def before() -> None:
        if left:
            perform(other, left.pop())

    def held(self: ArrowTables, name: str, looks: bool) -> Any:
        table = opened(self, name, looks)
        return _Held(table, before, refused) if self is lake.delta else table

    with patch.context() as inside:
        inside.setattr(ArrowTables, "_opened", held)
        return perform(lake, case.first)


@pytest.fixture(scope="module")
def sessions(spark: SparkSession) -> list[SparkSession]:
    """Two writers' sessions, set up for small batches: settings of a session are no business of the other's."""
    made = [configured(spark.newSession()) for _ in range(2)]
    for session in made:
        tune_codegen(session, 1)
    return made


# The model is compared with all of them in every run.
@pytest.mark.parametrize("case", some(CASES, 20), ids=lambda case: case.name)
def test_interleaving(
    case: Case, sessions: list[SparkSession], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = str(tmp_path / "lake")
    ArrowTables(root).create(REGISTRY)
    lake, other = (ArrowLake(session, root) for session in sessions)
    for op in case.before:
        perform(other, op)
    refused: list[str] = []
    if case.first.kind in _SPARKS and case.second:
        answer = _spark(lake, other, case, tmp_path, refused)
    elif case.first.kind in _SPARKS:
        answer = perform(lake, case.first)
    else:
        answer = _light(lake, other, case, monkeypatch, refused)
    assert (tuple(refused), answer, seen(other, case)) == (case.refused, case.answer, case.ids)
