"""Old reports go, and only those."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from clickjoin.lake import DeltaTables
from clickjoin.lake.replace_rows import drop_before
from clickjoin.schemas import VERIFICATION

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_old_rows_go(tmp_path: Path) -> None:
    delta = DeltaTables(str(tmp_path))
    delta.create(VERIFICATION)
    assert not drop_before(delta, "verification", "at", NOON)
    for hours in (-2, -1, 0, 1):
        rows = [
            {"run": f"main/{hours}", "at": NOON + timedelta(hours=hours), "kind": kind} for kind in ("lost", "unread")
        ]
        delta.append("verification", rows)
    assert drop_before(delta, "verification", "at", NOON)
    assert sorted(delta.read("verification")["run"].to_pylist()) == ["main/0"] * 2 + ["main/1"] * 2
    version = delta.version("verification")
    assert not drop_before(delta, "verification", "at", NOON)
    assert delta.version("verification") == version
