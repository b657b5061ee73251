"""Joins by a key and time, proposed where no ids meet: a column of both logs that names a user, a session, a device."""

from __future__ import annotations

import re
from dataclasses import replace

from clickjoin.proposal.columns import is_named_id
from clickjoin.proposal.guess import GUESS, LIKELY, Choice, Guess, id_columns
from clickjoin.proposal.logs import Log

_WHOSE = re.compile(
    r"user|customer|visitor|session|device|account|client|member|cookie|person|profile|shopper|buyer|anonymous|distinct",
    re.IGNORECASE,
)
_MET = 0.2  # of the foreign records, so many have a key that primary ones have
_MANY = 0.02  # keys a record, at least: a country or a channel is no key
_WITHIN = "7d"


def with_key(found: Guess, primary: Log, foreign: Log) -> Guess:
    """A guess whose `primary_id` nobody knows, with `match` in its place where both logs share a key."""
    if "primary_id" in found.foreign and "FILL_IN" not in found.foreign["primary_id"].value:
        return found
    key = shared_key(primary, foreign)
    if key is None:
        return found
    fields = {name: choice for name, choice in found.foreign.items() if name not in ("primary_id", "primary_time")}
    return replace(found, foreign=fields | {"match": key})


def shared_key(primary: Log, foreign: Log) -> Choice | None:
    """The columns of both logs of which most foreign records have a value that primary ones have."""
    best: tuple[tuple[float, bool, bool], Choice] | None = None
    mine, theirs = id_columns(primary), id_columns(foreign)
    for name, values in mine.items():
        known = {value for value in values if value is not None and value.strip()}
        for other, wanted in theirs.items():
            said = bool(_WHOSE.search(name) and _WHOSE.search(other))
            given = [value for value in wanted if value in known]
            if not said and not (is_named_id(name) and is_named_id(other)):
                continue
            share, many = len(given) / max(foreign.rows, 1), len(set(wanted) - {None}) / max(foreign.rows, 1)
            if share < _MET or many < _MANY:
                continue
            on = name if name == other else {"foreign": other, "primary": name}
            why = (
                f"no ids meet; {len(given):,} of {foreign.rows:,} sampled foreign records share it with one of "
                f"{len(known):,} keys of primary ones; how far back is not known"
            )
            choice = Choice({"on": on, "pick": "last", "within": _WITHIN}, LIKELY if said else GUESS, why)
            if best is None or (share, said, name == other) > best[0]:
                best = (share, said, name == other), choice
    return best[1] if best else None
