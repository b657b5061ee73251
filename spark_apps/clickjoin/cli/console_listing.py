"""What the command line prints of tables that it lists: lines that are whole at any width, or JSON lines."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from clickjoin.cli.console import pairs, print_json, report_line

if TYPE_CHECKING:
    from clickjoin.report.listing import Listed

_SHOWN = {
    "pending": ("event_id", "event_time", "primary_id", "state", "attempt", "due_at"),
    "unjoinable": ("event_id", "event_time", "primary_id", "attempt", "at"),
    "expired": ("event_id", "event_time", "primary_id", "at"),
    "quarantine": ("at", "stream", "reason", "path", "offset", "detail"),
    "signals": ("reported_at", "kind", "key", "window_start", "window_end", "count", "expected", "score", "retracted"),
}
# Of none, of one, of more.
_WORDS = {
    "pending": (
        "no event waits",
        "1 event waits for its primary event",
        "{:,} events wait for their primary event",
    ),
    "unjoinable": ("no event has been given up", "1 event has been given up", "{:,} events have been given up"),
    "expired": (
        "no event has expired",
        "1 event came after the registry had forgotten its time",
        "{:,} events came after the registry had forgotten their time",
    ),
    "quarantine": (
        "no record is in quarantine",
        "1 record could not be understood",
        "{:,} records could not be understood",
    ),
    "signals": ("nothing has been reported", "1 signal has been reported", "{:,} signals have been reported"),
}


def listed(name: str, found: Listed, by: str, limit: int, as_json: bool) -> None:
    """Print the newest rows of a table and what they count by; `by`: only the counts, `limit` of them."""
    words = _WORDS[name][min(found.count, 2)].format(found.count)
    groups = found.groups[: limit if by else None]
    if as_json:
        for item in groups if by else found.rows:
            print(json.dumps({key: _plain(value) for key, value in item.items()}))
    if not found.count:
        print(f"{name}: {words}", file=sys.stderr if as_json else sys.stdout)
    if as_json or not found.count:
        return
    report_line(f"{name}: {words}")
    if groups:
        _lines(list(groups[0]), groups)
    if found.rows and not by:
        report_line("")
        _lines(_SHOWN[name], found.rows)
    _more(*(len(groups), len(found.groups)) if by else (len(found.rows), found.count))


def key_stands(found: dict[str, Any], as_json: bool) -> None:
    """Print how a key of per-key processing stands."""
    if as_json:
        return print_json(found)
    singles = {name: value for name, value in found.items() if not isinstance(value, list | dict)}
    if band := found["expected"]:
        singles |= {"expected per window": f"{band['expected']:g}, from {band['low']:g} to {band['high']:g}"}
        singles |= {"expected until": band["to"]}
    pairs("the key, as it stands now", {name: _text(value) for name, value in singles.items() if name != "expected"})
    if found["open"]:
        report_line("open windows")
        _lines(("window_start", "window_end", "count"), found["open"])
    if found["signals"]:
        report_line("signals, newest first")
        _lines(_SHOWN["signals"], found["signals"])
    if found["late"]:
        report_line("late events, newest first")
        _lines(("event_time", "event_id", "reason", "watermark"), found["late"])
    return None


def _more(shown: int, whole: int) -> None:
    if 0 < shown < whole:
        report_line(f"{shown:,} of {whole:,} shown; --limit shows more")


def _lines(columns: Sequence[str], rows: Iterable[dict[str, Any]]) -> None:
    """Columns side by side, each as wide as its widest text: nothing is cut, and a shell can split it."""
    table = [columns, *([_text(row[name]) for name in columns] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for line in table:
        report_line("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())


def _text(value: Any) -> str:
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%dT%H:%M:%SZ}"
    text = "-" if value is None else str(value)
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def _plain(value: Any) -> Any:
    return f"{value:%Y-%m-%dT%H:%M:%S.%fZ}" if isinstance(value, datetime) else value
