"""Which events another lake has joined and this one has not: what a restore has cost, once the sources were read again.

Data files that both lakes name are the same and are not read; of the others, one bucket after the other.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING

from clickjoin.lake.maintenance import place_column
from clickjoin.lake.read_files import read_files
from clickjoin.lake.readable import ReadableTables
from clickjoin.model.errors import ConfigError
from clickjoin.model.ids import EVENT_KEY
from clickjoin.model.places import declare_output, output_of

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.lake.delta_reader import DeltaReader

_PLACES = ("filtered", "unjoinable", "expired", "pending")
_Event = tuple[str, datetime]
_ByPlace = dict[str, list[str]]
_DATE = len("2026-03-01")  # what the names of a date's buckets begin with


@dataclass(frozen=True)
class MissingEvent:
    """An event that the other lake has joined; `state`: the table of this lake that it is in, else `never read`."""

    event_id: str
    event_time: datetime
    primary_id: str | None
    state: str


def compare(pipeline: Pipeline, other: str | Path) -> Iterator[MissingEvent]:
    """Events in `joined` of the lake or backup at a path or URI that are not in this lake's, partition by partition.

    Errors: ConfigError where the folder holds no such table, LakeError where one cannot be read.
    """
    declare_output(str(other), output_of(pipeline.root))
    old, new = ReadableTables(str(other)), ReadableTables(pipeline.root)
    if not old.exists("joined"):
        raise ConfigError(
            f"{other}: holds no table `{output_of(pipeline.root)}`",
            remedy="Give the folder that `clickjoin restore` put aside",
        )
    by_date = any("bucket" not in delta.table("joined").partitions for delta in (old, new))
    letters = _DATE if by_date else None
    olds, news = _files(old, "joined", letters), _files(new, "joined", letters)
    both = {path for paths in olds.values() for path in paths} & {path for paths in news.values() for path in paths}
    places: dict[_Event, str] | None = None
    for place, paths in sorted(olds.items()):
        gone = _gone(old, [p for p in paths if p not in both], new, [p for p in news.get(place, []) if p not in both])
        if gone and places is None:
            places = {
                event: name for name in _PLACES for event in _events(new, name, new.files(name)["path"].to_pylist())
            }
        landed = set(_events(new, "foreign", _files(new, "foreign", letters).get(place, []))) if gone else set()
        for event, primary_id in sorted(gone.items()):
            unread = "foreign" if event in landed else "never read"
            yield MissingEvent(*event, primary_id, (places or {}).get(event, unread))


def _gone(old: DeltaReader, olds: list[str], new: DeltaReader, news: list[str]) -> dict[_Event, str | None]:
    named = "primary_id" in old.table("joined").names
    rows = read_files(old, "joined", olds, [*EVENT_KEY, *(["primary_id"] if named else [])])
    keys = zip(*(rows[name].to_pylist() for name in list(EVENT_KEY)), strict=True)
    found = dict(zip(keys, rows["primary_id"].to_pylist() if named else repeat(None), strict=named))
    for event in _events(new, "joined", news) if found else ():
        found.pop(event, None)
    return found


def _events(delta: DeltaReader, name: str, paths: list[str]) -> Iterator[_Event]:
    rows = read_files(delta, name, paths, list(EVENT_KEY))
    yield from zip(*(rows[column].to_pylist() for column in list(EVENT_KEY)), strict=True)


def _files(delta: DeltaReader, name: str, letters: int | None) -> _ByPlace:
    """Files by bucket or date, of whose name so many letters count."""
    found: _ByPlace = defaultdict(list)
    actions = delta.files(name)
    if actions.num_rows:
        places = actions[f"partition.{place_column(delta.table(name))}"].to_pylist()
        for place, path in zip(places, actions["path"].to_pylist(), strict=True):
            found[str(place)[:letters]].append(path)
    return found


def by_state(found: list[MissingEvent]) -> dict[str, int]:
    """How many of them are where."""
    return dict(Counter(item.state for item in found).most_common())
