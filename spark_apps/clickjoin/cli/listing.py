"""Commands that list: what did not join, quarantine and its export, signals, dates. All without Spark."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from clickjoin.cli import console
from clickjoin.cli.base import Config, Json, alone, app, load, small_tables
from clickjoin.model.errors import ConfigError
from clickjoin.model.span import parse_moment

if TYPE_CHECKING:
    from clickjoin.report.listing import Listed

JsonLines = Annotated[bool, typer.Option("--json", help="print a JSON object a line, for a machine to read")]
Limit = Annotated[int, typer.Option(min=0, help="rows to show, newest first; with --by, groups")]
Since = Annotated[str, typer.Option("--from", help="first event time, such as 2026-03-01T12:00Z; default: all")]
Until = Annotated[str, typer.Option("--to", help="event time to end before; default: all")]
ByAttempt = Annotated[Literal["attempt", "hour"] | None, typer.Option(help="only count, by this")]
Cause = Annotated[bool, typer.Option("--cause/--no-cause", help="look up why: reads the ids of all primary events")]
ByHour = Annotated[Literal["hour"] | None, typer.Option(help="only count, by this")]
ByReason = Annotated[Literal["reason", "file", "hour"] | None, typer.Option(help="only count, by this")]


_SHOWN = {
    "pending": ("event_id", "event_time", "primary_id", "state", "attempt", "due_at"),
    "unjoinable": ("event_id", "event_time", "primary_id", "attempt", "at", "cause"),
    "expired": ("event_id", "event_time", "primary_id", "at"),
    "quarantine": ("at", "stream", "reason", "path", "offset", "detail"),
    "signals": ("reported_at", "kind", "key", "window_start", "window_end", "count", "expected", "score", "retracted"),
}
# Of none, of one, of more.
_WORDS = {
    "pending": ("no event waits", "1 event waits for its primary event", "{:,} events wait for their primary event"),
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


@app.command()
def pending(
    config: Config, by: ByAttempt = None, limit: Limit = 20, since: Since = "", until: Until = "",
    as_json: JsonLines = False,
) -> None:  # fmt: skip
    """Events that wait for their primary event, and when each is tried again."""
    _list("pending", config, by, limit, since, until, as_json)


@app.command()
def unjoinable(
    config: Config, by: ByAttempt = None, limit: Limit = 20, since: Since = "", until: Until = "",
    as_json: JsonLines = False, cause: Cause = True,
) -> None:  # fmt: skip
    """Events that were given up, and why; `redrive` sends them again."""
    _list("unjoinable", config, by, limit, since, until, as_json, cause=cause)


@app.command()
def expired(
    config: Config, by: ByHour = None, limit: Limit = 20, since: Since = "", until: Until = "",
    as_json: JsonLines = False,
) -> None:  # fmt: skip
    """Events that came after the registry had forgotten their time: kept, and never joined."""
    _list("expired", config, by, limit, since, until, as_json)


def _list(
    name: str, config: Path, by: str | None, limit: int, since: str, until: str, as_json: bool, cause: bool = False
) -> None:  # fmt: skip
    from clickjoin.report.listing import listed

    first, last = (parse_moment(text) if text else None for text in (since, until))
    if first and last and first >= last:
        raise ConfigError(
            f"--from {since} is not before --to {until}", remedy="Give an earlier --from, or a later --to"
        )
    delta = small_tables(pipeline := load(config))
    found = listed(delta, name, datetime.now(UTC), since=first, until=last, by=by or "", limit=limit)
    if cause and not by:
        from clickjoin.report.why_unjoined import why_each

        for row, why in zip(found.rows, why_each(pipeline, delta, found.rows), strict=True):
            row["cause"] = why
    _show(name, found, by or "", limit, as_json)


def _quarantined(
    config: Config, by: ByReason = None, limit: Limit = 20,
    since: Annotated[str, typer.Option("--from", help="first time of quarantine; default: all")] = "",
    until: Annotated[str, typer.Option("--to", help="time of quarantine to end before; default: all")] = "",
    as_json: JsonLines = False,
) -> None:  # fmt: skip
    _list("quarantine", config, by, limit, since, until, as_json)


quarantine = typer.Typer(invoke_without_command=True, help="Records that could not be understood, and why.")
quarantine.callback()(alone(_quarantined))
app.add_typer(quarantine, name="quarantine")


@quarantine.command(name="export")
def export_quarantine(
    config: Config,
    out: Annotated[Path, typer.Option("--out", "-o", help="a new file; a log wherever a source's glob matches it")],
    stream: Annotated[str, typer.Option(help="primary or foreign; needed where both have such records")] = "",
    reason: Annotated[str, typer.Option(help="only records with this reason, such as bad-time")] = "",
    path: Annotated[str, typer.Option(help="only records of files that this glob names, as `path` has them")] = "",
    as_json: Json = False,
) -> None:
    """Write quarantined records to a file, byte for byte, to be read again once their cause is fixed."""
    from clickjoin.kernel.parse.lines import REASONS
    from clickjoin.report.export import export

    if stream not in ("", "primary", "foreign"):
        raise ConfigError(f"--stream {stream}: no such stream", remedy="Streams are primary and foreign")
    if reason not in ("", *REASONS):
        raise ConfigError(f"--reason {reason}: no such reason", remedy=f"Reasons are {', '.join(REASONS)}")
    pipeline = load(config)
    done = asdict(export(pipeline, small_tables(pipeline), out, stream=stream, reason=reason, path=path))
    console.answer({"file": str(out), **done}, as_json, lambda: _exported(done))


def _exported(done: dict[str, Any]) -> None:
    reasons = ", ".join(f"{reason} {count}" for reason, count in done["reasons"].items())
    written = f"{', '.join(done['files'])}: {done['records']} records, {done['bytes']:,} bytes"
    console.report_line(written + (f" ({reasons})" if reasons else ""))
    if done["without_bytes"]:
        console.report_line(f"{done['without_bytes']} rows hold no bytes: put their files back, and they are read")


@app.command()
def signals(
    config: Config,
    key: Annotated[str | None, typer.Option(help="of this key alone, and how it stands")] = None,
    limit: Annotated[int, typer.Option(min=0, help="rows to show, newest first")] = 20,
    as_json: JsonLines = False,
) -> None:
    """What per-key processing has reported, newest first. Starts no Spark."""
    from clickjoin.report import processing as report

    pipeline = load(config)
    _show("signals", report.signals(pipeline, key, limit), "", limit, as_json)
    if key is not None and not as_json:
        console.pairs("the key, as it stands now", report.key_state(pipeline, key))


_PLACES = ("accepted", "joined", "pending", "unjoinable", "expired", "filtered", "forgotten")
COUNTS = (*_PLACES, "faults", "failed", "warned")


@app.command()
def dates(config: Config, as_json: Json = False) -> None:
    """Show the state of every date that was ever closed or worked on. No Spark."""
    from clickjoin.dates import ledger

    rows = ledger.newest(small_tables(load(config)))
    show_dates([rows[date] for date in sorted(rows)], as_json)


def show_dates(rows: list[dict[str, Any]], as_json: bool) -> None:
    """Print rows of table `dates`, and why one is not closed."""
    if as_json:
        console.print_json(rows)
        return
    if not rows:
        console.report_line(
            "no date was closed or worked on yet: `clickjoin close DATE` closes one, or says what is missing"
        )
        return
    # Most are 0 on most dates; all of them make a table that few terminals can hold.
    shown = [name for name in COUNTS if name in ("accepted", "joined") or any(row.get(name) for row in rows)]
    whole = [row | {name: row.get(name) or 0 for name in shown} for row in rows]
    console.columns(("date", "state", "revision", *shown, "run"), whole)
    for row in rows:
        if row["detail"]:
            console.report_line(f"{row['date']}: {row['detail']}")


def _show(name: str, found: Listed, by: str, limit: int, as_json: bool) -> None:
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
    console.report_line(f"{name}: {words}")
    if groups:
        console.columns(list(groups[0]), groups)
    if found.rows and not by:
        console.report_line("")
        console.columns([column for column in _SHOWN[name] if column in found.rows[0]], found.rows)
    shown, whole = (len(groups), len(found.groups)) if by else (len(found.rows), found.count)
    if 0 < shown < whole:
        console.report_line(f"{shown:,} of {whole:,} shown; --limit shows more")


def _plain(value: Any) -> Any:
    return f"{value:%Y-%m-%dT%H:%M:%S.%fZ}" if isinstance(value, datetime) else value
