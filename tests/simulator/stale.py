"""What delta-rs's full VACUUM removes."""

from __future__ import annotations

from tests.simulator.model import Lake, Snapshot, Table


def stale(lake: Lake, table: Table, at: Snapshot, hours: float) -> list[str]:
    """Files of a table that a full vacuum removes: no part of a version, written and removed long ago."""
    before = lake.clock() - hours * 3600
    known = (path.removeprefix(f"{table.path}/") for path in lake.files if path.startswith(f"{table.path}/"))
    return [
        path
        for path in known
        if path not in at.files
        and table.removed.get(path, before - 1) < before
        and lake.files[f"{table.path}/{path}"].at < before
    ]
