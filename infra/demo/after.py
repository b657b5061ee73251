"""What to look at once the demo is over: commands with a real id of this run, ready to be pasted."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from clickjoin.cli.examples import EXAMPLES

from .feeder import Entry
from .lake import OUTCOMES, Lake


def telling_click(lake: Lake, entries: Sequence[Entry]) -> tuple[str, str]:
    """A click whose way is worth a look, and what is special about it; empty where no click has landed.

    One that is in no place yet; else one that waited for its impression; else any that was joined.
    """
    landed = lake.ids("foreign")
    if lost := landed.difference(*map(lake.ids, OUTCOMES)):
        return min(lost), "a click that has no outcome yet"
    held = {entry.event_id for entry in entries if entry.kind == "held"}
    joined = lake.read("joined", "event_id", "primary_id")
    if late := [row["event_id"] for row in joined if row["primary_id"] in held]:
        return min(late), "a click that waited for its impression"
    return (min(row["event_id"] for row in joined), "a click that was joined") if joined else ("", "")


def next_steps(lake: Lake, entries: Sequence[Entry], pipeline: Path, stack: str = "") -> list[str]:
    """Lines that say what to try next. `stack`: how to reach what was left up; empty where it was stopped."""
    commands = {"status": "lag, counts, the last batches"}
    event_id, why = telling_click(lake, entries)
    if event_id:
        commands[f"explain {event_id}"] = why
    for name, what in {"pending": "what waits", "unjoinable": "what was given up", "quarantine": "bad records"}.items():
        if lake.waiting() if name == "pending" else lake.rows(name):
            commands[name] = what
    width = max(map(len, commands))
    return [
        "look at what it left:",
        f"  export CLICKJOIN_CONFIG={shown(pipeline)}",
        *(f"  .venv/bin/clickjoin {command:{width}}  # {what}" for command, what in commands.items()),
        f"your own logs: .venv/bin/clickjoin {EXAMPLES['init']}",
        stack or "`make demo KEEP=1` leaves Spark and Airflow up, with the status page in its UI",
    ]


def ended(lake: Lake, server: str, docs: str) -> list[str]:
    """Lines for a demo whose server has stopped with it: where its tables are, and what to read to use another."""
    return [
        f"its {server} has stopped with it; the Delta tables are left on the disk, in {shown(lake.folder)}",
        f"{docs} says how to point a pipeline at yours; `make demo` leaves one that clickjoin's commands can look at",
    ]


def shown(path: Path) -> str:
    """A path as it can be pasted here: below this folder, relative."""
    return os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path)
