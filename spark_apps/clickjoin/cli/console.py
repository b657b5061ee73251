"""What the command line prints: rich tables for a person, JSON for a machine."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.measure import Measurement
from rich.progress import Progress
from rich.table import Table

from clickjoin import schemas
from clickjoin.model.reporter import Reporter
from clickjoin.report.status import batch_text, problem_text

_out = Console(highlight=False, emoji=False)
_err = Console(stderr=True, highlight=False, emoji=False)
_WIDEST = 10_000  # characters


def report_line(text: str) -> None:
    """Print a line."""
    _out.print(text, markup=False, soft_wrap=True)


def report_error(text: str) -> None:
    """Print a line on stderr."""
    _err.print(text, markup=False, soft_wrap=True)


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Show that something longer is going on."""
    with _err.status(f"{what} …"):
        yield


@contextmanager
def starting(what: str) -> Iterator[None]:
    """The same of what is begun once: off a terminal, where nothing moves, it is a line."""
    if not _err.is_terminal:
        report_error(f"{what} …")
    with waiting(what):
        yield


@contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show how far something has come: call what this gives with done and whole."""
    with Progress(console=_err, transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, whole: bar.update(task, completed=done, total=whole)


def batch_line(as_json: bool) -> Reporter:
    """How to say a line about a batch: on stderr where stdout is for a machine."""
    target = _err if as_json else _out
    return lambda text: target.print(text, markup=False, soft_wrap=True)


def generated(folder: Path, truth: Mapping[str, Any]) -> None:
    """Print what the generator wrote."""
    lines = {f"{part} {name}": n for part in ("queries", "clicks") for name, n in truth[part].items()}
    pairs(f"written to {folder}", {
        **{name: f"{number:,}" for name, number in lines.items()},
        "joinable clicks": f"{truth['joinable']:,}", "clicks without a query": f"{truth['orphans']:,}",
        "all of it": "yes" if truth["complete"] else "no, it was stopped",
    })  # fmt: skip


def wide(table: Table) -> None:
    """Print a table with nothing cut: off a terminal as wide as it is, on a narrow one with long words folded.

    Its title is a line of its own, which need not be as narrow as the table.
    """
    if table.title:
        report_line(str(table.title))
        table.title = None
    for column in table.columns:
        column.overflow = "fold"
    if _out.is_terminal:
        return _out.print(table)
    roomy = Console(highlight=False, emoji=False, width=_WIDEST)
    whole = Measurement.get(roomy, roomy.options, table).maximum
    Console(highlight=False, emoji=False, width=max(whole, _out.width)).print(table)
    return None


def verdict(text: str, ok: bool) -> None:
    """Print whether all is well."""
    _out.print(f"[{'green' if ok else 'red'}]{text}[/]")


def print_json(data: Any) -> None:
    """Print data as JSON."""
    print(json.dumps(data, indent=2, default=str))


def pairs(title: str, data: dict[str, Any]) -> None:
    """Print names and values under a title; nothing where there are none."""
    if not data:
        return
    table = Table(title=title, title_justify="left", show_header=False)
    table.add_column(style="bold")
    table.add_column(justify="right")
    for key, value in data.items():
        table.add_row(key.replace("_", " "), "-" if value is None else str(value))
    wide(table)


_UNITS = {"latency_p90": "latency_p90_seconds"}


def short(data: dict[str, Any]) -> dict[str, Any]:
    """Single values, times to milliseconds, each under a name that says its unit."""
    return {
        _UNITS.get(key, key): round(value, 3) if isinstance(value, float) else value
        for key, value in data.items()
        if not isinstance(value, list | dict)
    }


def verified(data: dict[str, Any], as_json: bool) -> None:
    """Print what a verification found and repaired."""
    if as_json:
        return print_json(data)
    table = Table("kind", "found", "repaired", title=f"verified: {data['from']} to {data['to']}", title_justify="left")
    for kind, count in data["found"].items():
        table.add_row(kind.replace("_", " "), str(count), str(data["repaired"].get(kind, 0)))
    for kind, count in data["counted"].items():
        table.add_row(f"({kind.replace('_', ' ')})", str(count), "", style="dim")
    wide(table)
    report_line(f"{data['ids']} ids and {data['bytes']} bytes of input looked at")
    for kind, found in data["samples"].items():
        report_line(f"{kind.replace('_', ' ')}: " + "; ".join(" ".join(map(str, one.values())) for one in found))
    for note in data["notes"]:
        report_line(note)
    verdict(data["verdict"], data["ok"])
    return None


def graded(data: dict[str, Any], as_json: bool) -> None:
    """Print what a run of the quality suites found; the checks that are red have been said."""
    if as_json:
        return print_json(data)
    report_line(f"report: {data['report']}/index.html")
    verdict(data["verdict"], data["ok"])
    return None


def status(name: str, data: dict[str, Any], as_json: bool) -> None:
    """Print how a pipeline stands."""
    if as_json:
        return print_json(data)
    pairs(f"{name}: rows", {**data["rows"], "pending now": data["pending"]})
    report_line(f"engine: {data['engine']}")
    for replica, part in data["replicas"].items():
        misfits = {f"misfits of {column}": count for column, count in part.get("misfits", {}).items()}
        pairs(f"replica {replica}", short(part) | part["totals"] | misfits)
        if part.get("watermark", "") is None:
            report_line("no watermark yet: each stream has to be read to its end without a problem, and have an event")
        for problem in part["problems"]:
            report_line(problem_text(**problem))
        _batches(part["last"])
    _chain(data.get("chain", []))
    pairs("per-key processing", {name: value for name, value in data.get("processing", {}).items() if name != "why"})
    if data.get("processing"):
        report_line(f"its watermark rests on {data['processing']['why']}")
    return None


def _chain(parts: list[dict[str, Any]]) -> None:
    """The pipelines that read one another, a line each."""
    if parts:
        _out.print("[bold]chain[/]")
    for part in parts:
        reads = ", ".join(
            f"{stream} from {name} ({part['unread'].get(stream, '?')} unread)" for stream, name in part["reads"].items()
        )
        mark = f"{part['watermark']:%Y-%m-%d %H:%M:%S} UTC" if part["watermark"] else "not known"
        stands = part.get("problem") or f"joined {part['joined']}; output complete up to {mark} ({part['why']})"
        report_line(f"{part['pipeline']}: {stands}" + (f"; reads {reads}" if reads else ""))


def _batches(rows: list[dict[str, Any]]) -> None:
    _out.print("[bold]last batches[/]" if rows else "no batch has been settled yet")
    for row in rows:
        report_line(batch_text(row, f"{row['settled_at']:%m-%d %H:%M:%S}"))


def explained(data: dict[str, Any], as_json: bool) -> None:
    """Print an event's state and its whole way."""
    if as_json:
        return print_json(data)
    _history(data, f"{data['event_id']}: {data['state']}")
    for part in data.get("chain", []):
        report_line("")
        _history(part, f"pipeline {part['pipeline']}, {part['how']}: {part['event_id']}: {part['state']}")
    return None


def _history(data: dict[str, Any], title: str) -> None:
    report_line(title + (f". {data['remedy']}" if data["remedy"] else ""))
    for step in data["history"]:
        _out.print(f"[bold]{step['table']}[/]")
        for key, value in step.items():
            if key != "table":
                report_line(f"  {key.replace('_', ' ')}: {value}")  # whole, however long: it is there to be copied


def exported(out: Path, data: dict[str, Any], as_json: bool) -> None:
    """Print what was written of the quarantine."""
    if as_json:
        return print_json({"file": str(out), **data})
    reasons = ", ".join(f"{reason} {count}" for reason, count in data["reasons"].items())
    report_line(f"{out}: {data['records']} records, {data['bytes']:,} bytes" + (f" ({reasons})" if reasons else ""))
    if data["without_bytes"]:
        report_line(f"{data['without_bytes']} rows hold no bytes: put their files back, and they are read")
    return None


def schema(as_json: bool) -> None:
    """Print every table's columns."""
    if as_json:
        return print_json(
            {t.name: [{"name": c.name, "type": c.type, "meaning": c.meaning} for c in t.columns] for t in schemas.ALL}
        )
    for item in schemas.ALL:
        table = Table("column", "type", "meaning", title=f"{item.name}: {item.purpose}", title_justify="left")
        for column in item.columns:
            table.add_row(column.name, column.type, column.meaning)
        _out.print(table)
    return None
