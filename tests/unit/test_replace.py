"""Old reports go, and only those."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from clickjoin.lake import SmallTables
from clickjoin.lake.replace import drop_before
from clickjoin.tables import VERIFICATION

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_old_rows_go(tmp_path: Path) -> None:
    small = SmallTables(str(tmp_path))
    small.create(VERIFICATION)
    assert not drop_before(small, "verification", "at", NOON)
    for hours in (-2, -1, 0, 1):
        rows = [
            {"run": f"main/{hours}", "at": NOON + timedelta(hours=hours), "kind": kind} for kind in ("lost", "unread")
        ]
        small.append("verification", rows)
    assert drop_before(small, "verification", "at", NOON)
    assert sorted(small.read("verification")["run"].to_pylist()) == ["main/0"] * 2 + ["main/1"] * 2
    version = small.version("verification")
    assert not drop_before(small, "verification", "at", NOON)
    assert small.version("verification") == version
