"""What the command line prints about dates."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Column, Table

from clickjoin.cli.console import wide

_out = Console(highlight=False, emoji=False)
_PLACES = ("accepted", "joined", "pending", "unjoinable", "expired", "filtered", "forgotten")
_COUNTS = (*_PLACES, "faults", "failed", "warned")
_ALWAYS = ("accepted", "joined")
_COLORS = {"closed": "green", "failing": "red", "open": "yellow"}


def closed(rows: Sequence[Mapping[str, Any]], as_json: bool, *, details: bool = True) -> None:
    """Print rows of table `dates`; `details`: why one is not closed, unless that was reported as it was worked on."""
    if as_json:
        print(json.dumps([dict(row) for row in rows], indent=2, default=str))
        return
    # Most are 0 on most dates; all of them make a table that few terminals can hold.
    shown = [name for name in _COUNTS if name in _ALWAYS or any(row.get(name) for row in rows)]
    fixed = (Column(name, no_wrap=True) for name in ("date", "state"))
    table = Table(
        *fixed, Column("revision", justify="right"), *(Column(name, justify="right") for name in shown), "run"
    )
    for row in rows:
        state = f"[{_COLORS.get(row['state'], 'white')}]{row['state']}[/]"
        counts = (str(row.get(name) or 0) for name in shown)
        table.add_row(str(row["date"]), state, str(row["revision"]), *counts, str(row["run"]))
    wide(table)
    for row in rows if details else ():
        if row["detail"]:
            _out.print(f"{row['date']}: {row['detail']}", markup=False, soft_wrap=True)


def backfilled(data: Mapping[str, Any], as_json: bool) -> None:
    """Print what a backfill did, or would do."""
    if as_json:
        print(json.dumps(data, indent=2, default=str))
        return
    if "dry_run" in data:
        names = list(dict.fromkeys(name for row in data["dry_run"] for name in row))
        table = Table(*names, title="dry run: nothing was changed", title_justify="left")
        for row in data["dry_run"]:
            table.add_row(*("; ".join(f"{k} {v}" for k, v in value.items()) or "-" if isinstance(value, dict)
                            else str(value) for value in (row.get(name, "") for name in names)))  # fmt: skip
        wide(table)
        _downstream(data)
        return
    closed(data["dates"], as_json, details=False)
    _out.print(str(data["verdict"]), style="green" if data["ok"] else "red", markup=False, soft_wrap=True)
    _downstream(data)


def _downstream(data: Mapping[str, Any]) -> None:
    for item in data.get("downstream", ()):
        _out.print(item["text"], markup=False, soft_wrap=True)
