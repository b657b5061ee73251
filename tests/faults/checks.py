"""What must hold at every moment, and what must hold at the end: counted by the oracle, which shares no code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.oracle import examine

if TYPE_CHECKING:
    from tests.faults.conftest import Pipeline

TABLES = ("primary", "foreign", "joined", "pending", "unjoinable", "filtered", "expired", "quarantine")


def assert_exactly_once(pipeline: Pipeline, *, whole: bool = True, replicas: int = 1) -> None:
    """Nothing doubled, invented or joined wrongly; at the end (`whole`) nothing lost or left waiting either.

    Each replica lands its own copy of the logs, so lines can be counted against one alone.
    """
    tables = pipeline.tables
    if missing := [name for name in TABLES if not (tables / name / "_delta_log").exists()]:
        # Killed while it made them: no batch begins before all are there.
        assert not whole, missing
        assert not list(tables.rglob("journal/**/*.parquet")), missing
        return
    logs = pipeline.folder / "logs"
    found = examine(str(logs / "clicks/*"), str(logs / "queries/*"), str(tables))
    assert not found.doubled | found.extra | found.wrong | found.two_places, found.text()
    if whole:
        assert not found.lost, found.text()
        assert found.ok or replicas > 1, found.text()
        assert found.pending == 0, found.text()
        assert found.joined == found.clicks == 60, found.text()
