"""What the command line prints: lines for a person, of which none is cut, and JSON for a machine."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import typer
from rich.console import Console

from clickjoin.jobs.summary_text import field_lines, summary_lines
from clickjoin.model.reporter import Reporter

_out = Console(highlight=False, emoji=False)
_err = Console(stderr=True, highlight=False, emoji=False)


def report_line(text: str, style: str | None = None) -> None:
    """Print a line."""
    _out.print(text, style=style, markup=False, soft_wrap=True)


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
    from rich.progress import Progress

    with Progress(console=_err, transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, whole: bar.update(task, completed=done, total=whole)


def batch_line(as_json: bool) -> Reporter:
    """How to say a line about a batch: on stderr where stdout is for a machine."""
    return report_error if as_json else report_line


def print_json(data: Any) -> None:
    """Print data as JSON."""
    print(json.dumps(data, indent=2, default=str))


def answer(data: Any, as_json: bool, show: Callable[[], object], *, fails: bool = False) -> None:
    """Print what a command found, as JSON or by `show`; end with exit code 1 where it `fails`."""
    print_json(data) if as_json else show()
    if fails:
        raise typer.Exit(1)


def verdict(text: str, ok: bool) -> None:
    """Print whether all is well."""
    report_line(text, "green" if ok else "red")


def pairs(title: str, data: Mapping[str, Any]) -> None:
    """Print names and values under a title; nothing where there are none."""
    for line in (title, *field_lines(data)) if data else ():
        report_line(plain(line))


def summary(name: str, data: Mapping[str, Any]) -> None:
    """Print a job's summary but for its verdict."""
    for line in summary_lines(name, data, whole=True):
        report_line(plain(line))


def columns(names: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Print columns side by side, each as wide as its widest text: nothing is cut, and a shell can split it."""
    table = [names, *([plain(row[name]) for name in names] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for line in table:
        report_line("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())


def plain(value: Any) -> str:
    """A value as text that no terminal takes for a command: what cannot be printed is escaped."""
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%dT%H:%M:%SZ}"
    text = "-" if value is None else str(value)
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
