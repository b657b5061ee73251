"""The matrix of interleavings run on the model: `first` is stopped by the model itself, just before it commits."""

from __future__ import annotations

from typing import Any

from clickjoin.engines.arrow import ArrowLake, ArrowTables
from clickjoin.schemas import REGISTRY
from tests.simulator import model, rust
from tests.simulator.cases import CASES, Case
from tests.simulator.matrix import perform, seen
from tests.simulator.session import SparkSession


class _Stopped(model.Lake):
    """Lets another writer go first, once, just before the next commit; notes refusals."""

    def __init__(self) -> None:
        super().__init__()
        self.first: Any = None
        self.refused: list[str] = []

    def commit_spark(self, table: Any, read: Any, commit: Any) -> Any:
        self._let()
        return self._noted(super().commit_spark, table, read, commit)

    def commit_rust(self, table: Any, since: Any, commit: Any, read: Any = None, *, exactly: bool = False) -> Any:
        self._let()
        return self._noted(super().commit_rust, table, since, commit, read, exactly=exactly)

    def _let(self) -> None:
        first, self.first = self.first, None
        if first:
            first()

    def _noted(self, commit: Any, *args: Any, **more: Any) -> Any:
        try:
            return commit(*args, **more)
        except model.Refused as error:
            self.refused.append(_word(str(error)))
            raise


def _word(text: str) -> str:
    names = {"ConcurrentTransaction": "transaction", "ConcurrentAppend": "append", "MetadataChanged": "metadata"}
    names |= {"ConcurrentDeleteRead": "delete-read", "ConcurrentDeleteDelete": "delete-delete"}
    return next((name for mark, name in names.items() if mark in text), "refused")


def run(case: Case) -> tuple[tuple[str, ...], Any, str]:
    """One case: why `first` was refused, what it answered, and what the table holds."""
    lake = _Stopped()
    rust.install(lake)
    ArrowTables("/matrix").create(REGISTRY)
    first, other = (ArrowLake(SparkSession(lake), "/matrix", sleep=lambda _: None) for _ in range(2))  # type: ignore[arg-type]
    for op in case.before:
        perform(other, op)
    second = case.second
    if second:
        lake.first = lambda: perform(other, second)
    answer = perform(first, case.first)
    lake.first = None
    return tuple(lake.refused), answer, seen(other, case)


def differences() -> list[str]:
    """Cases in which the model does not do what the table says."""
    found = []
    for case in CASES:
        got, wanted = run(case), (case.refused, case.answer, case.ids)
        if got != wanted:
            found.append(f"{case.name}: {got}, and not {wanted}")
    return found
