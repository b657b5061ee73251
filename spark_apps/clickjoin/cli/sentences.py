"""What commands that run jobs say in sentences beside a summary's figures: what follows from it, and what to do now."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any


def waiting(found: dict[str, Any]) -> Iterator[str]:
    """How many events a drain leaves waiting, and why it does; nothing where none waits."""
    if not found["waiting"]:
        return
    one = found["waiting"] == 1
    count = "1 event waits for its" if one else f"{found['waiting']:,} events wait for their"
    count += " primary event"
    if found["due"]:
        why = f"{found['due']:,} of them are due again, since retries fall due faster than they are tried"
        yield f"{count}; {why}: raise retry.first_delay or retry.backoff, or let `clickjoin run` go on"
        return
    next_due = f"{datetime.fromisoformat(found['next_due']):%Y-%m-%dT%H:%M:%SZ}"
    yield f"{count}: none is due before {next_due}, so this drain ends; `clickjoin run` or `retry` tries them then"


def sums(found: dict[str, Any]) -> str:
    """Whether a drain's sums agree."""
    agree = "the sums agree" if "accounts" in found else "nothing was counted (--no-check)"
    return agree if found["ok"] else "something is wrong: see above"


def closed(found: dict[str, Any]) -> str:
    """How a date stands."""
    return f"{found['date']} is {found['state']}"


def rebuilt(_: dict[str, Any]) -> Iterator[str]:
    """What is to be done after a rebuilding."""
    yield "now run `clickjoin verify --repair`: it finds what was under way when it was lost"


def forgotten(found: dict[str, Any]) -> Iterator[str]:
    """Where records are that were forgotten, and what may bring them back."""
    if found["dry_run"]:
        yield "nothing was changed; the same with --apply does it"
        return
    yield (
        f"older versions of the tables hold these records until `clickjoin gc` removes their files, "
        f"after {found['bytes_kept_until'][:16]} UTC; logs and backups hold them until you remove them"
    )
    for token in found["open"]:
        yield f"{token} is not settled, and may land such a record: then run `clickjoin verify --repair`"
