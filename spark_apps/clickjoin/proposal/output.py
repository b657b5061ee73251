"""Typed columns of the output, proposed from the values that two logs hold."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING

from clickjoin.model.field_path import FieldPath, parse_path, path_text
from clickjoin.model.places import RECORDS
from clickjoin.proposal.columns import as_time, type_of
from clickjoin.schemas import JOINED

if TYPE_CHECKING:
    from clickjoin.proposal.logs import Log

MOST = 20
_TAKEN = {*JOINED.names, *RECORDS.values()}


def proposed_columns(logs: dict[str, Log], used: Mapping[str, Collection[str]]) -> dict[str, tuple[str, str]]:
    """Columns of the output by name: where each value is, and its type; at most MOST of each stream.

    `used`: by stream, the columns that are ids and times already.
    """
    found: dict[str, tuple[str, str]] = {}
    for stream in ("foreign", "primary"):
        log = logs[stream]
        free = [name for name, values in log.columns.items() if name not in used[stream] and _says(values)]
        for name in free[:MOST]:
            path = (name,) if log.is_csv else parse_path(name)
            if column := _column(stream, path, found):
                found[column] = (path_text((stream, *path)), _type(name, log))
    return found


def _says(values: list[object]) -> bool:
    """Whether a column holds anything, and no object or array that is empty."""
    given = [value for value in values if value is not None]
    return any(value != "" for value in given) and not any(isinstance(value, dict | list) for value in given)


def _type(name: str, log: Log) -> str:
    values = log.columns[name]
    time = as_time(name, values)
    # A time in a form of its own stays text: the column's type reads ISO 8601 and numbers.
    return "TIMESTAMP" if time and time.named and time.form is None else type_of(values, as_text=log.is_csv)


def _column(stream: str, path: FieldPath, taken: Collection[str]) -> str | None:
    """A name for a value: its last key, with the stream before it where that is taken."""
    last = next((step for step in reversed(path) if isinstance(step, str)), "")
    name = re.sub(r"\W+", "_", last).strip("_").lower()
    for candidate in _candidates(stream, path, name):
        if candidate and candidate[0].isalpha() and candidate not in taken and candidate not in _TAKEN:
            return candidate[:128]
    return None


def _candidates(stream: str, path: FieldPath, name: str) -> Iterator[str]:
    yield name
    yield f"{stream}_{name}"
    yield re.sub(r"\W+", "_", f"{stream}_{path_text(path)}").strip("_").lower()
