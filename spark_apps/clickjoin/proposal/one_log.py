"""A log of several kinds of records: the field that tells them apart, and which kind looks the other up."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, permutations, zip_longest
from typing import Any

from clickjoin.model.errors import ConfigError
from clickjoin.model.where import text_of
from clickjoin.proposal.columns import is_named_id
from clickjoin.proposal.guess import GUESS, LIKELY, Choice, Guess, guess, id_columns, keys_of, lookup_of, time_of
from clickjoin.proposal.keys import with_key
from clickjoin.proposal.logs import Log

_KINDS = 20  # values of a field, at most, that may be kinds of records
_TRIED = 6  # of them, the most frequent
_FIELDS = 8
_RARE = 0.01  # of the records of a stream may lack what names them, as bad ones do
_NAMES = ("type", "event", "event_name", "event_type", "kind", "action", "name")
_THERE, _LACKING = "there", "lacking"
# Kinds of records that look others up, and are not looked up.
_LATER = re.compile(
    r"order|purchase|conver|checkout|sale|sign.?up|pay|transaction|subscri|lead|book|install", re.IGNORECASE
)


@dataclass(frozen=True)
class _Field:
    """What divides a log: a field's value in each record, or (`by_presence`) whether a record has it.

    `labels`: of each record the kind that it is of; `kinds`: the most frequent of them.
    """

    name: str
    labels: tuple[str | None, ...]
    kinds: tuple[str, ...]
    by_presence: bool = False

    def part(self, log: Log, kinds: Sequence[str]) -> Log:
        """The records of some kinds, with the columns that any of them has."""
        rows = [at for at, label in enumerate(self.labels) if label in kinds]
        marks = () if self.by_presence else (self.name,)
        columns = {name: [values[at] for at in rows] for name, values in log.columns.items() if name not in marks}
        held = {name: values for name, values in columns.items() if any(value is not None for value in values)}
        return replace(log, columns=held, rows=len(rows))

    def where(self, kinds: Sequence[str], sure: str = LIKELY, more: str = "") -> Choice:
        """The condition that is met by these kinds."""
        counts = Counter(label for label in self.labels if label is not None).most_common(_TRIED)
        others = ", ".join(f"{label} {count:,}" for label, count in counts)
        value: Any = {"exists": kinds[0] == _THERE} if self.by_presence else tuple(kinds)
        return Choice({self.name: value}, sure, f"{self.name} tells records of this log apart: {others}{more}")


def divided(log: Log) -> tuple[dict[str, Log], Guess]:
    """The records of both streams of a log, and what is proposed for them, `where` too.

    Errors: ConfigError where no field tells two kinds of records apart of which one names the other's ids.
    """
    best: tuple[tuple[float, bool], _Field, str, str] | None = None
    for field in _fields(log):
        if best and not (_is_named(field) or best[1].by_presence):
            break  # a field that is called so divides the log, before one that only some have
        parts = {kind: field.part(log, [kind]) for kind in field.kinds}
        ids = {kind: id_columns(part) for kind, part in parts.items()}
        for primary, foreign in permutations(field.kinds, 2):
            if lookup_of(ids[primary], ids[foreign]) is None:
                continue
            tried = guess(parts[primary], parts[foreign])
            joins = field.name in tried.foreign["primary_id"].value  # better than what it lacks besides
            score = _score(tried, parts[primary], parts[foreign]), joins
            if score[0] and (best is None or score > best[0]):
                best = (score, field, primary, foreign)
    if best is None:
        if found := _divided_by_key(log):
            return found
        raise ConfigError(
            f"{log.source.path}: is named for both streams, and no field tells kinds of records apart of which one "
            "names the ids of another, or shares a key with it",
            remedy="Give each stream's own files; or write the pipeline's file by hand, with `where` in both streams",
        )
    _, field, primary, foreign = best
    return _both(log, field, primary, foreign)


def _divided_by_key(log: Log) -> tuple[dict[str, Log], Guess] | None:
    """The same where two kinds share no ids, and a key: an order looks up what its user has seen."""
    best: tuple[tuple[bool, int], dict[str, Log], Guess] | None = None
    for field in _fields(log):
        if best or field.by_presence:
            break
        parts = {kind: field.part(log, [kind]) for kind in field.kinds}
        for primary, foreign in permutations(field.kinds, 2):
            logs = {"primary": parts[primary], "foreign": parts[foreign]}
            found = with_key(guess(**logs), **logs)
            event_ids = [found.primary["event_id"].value, found.foreign["event_id"].value]
            if "match" not in found.foreign or ("FILL_IN",) in event_ids:
                continue
            score = bool(_LATER.search(foreign)), parts[primary].rows
            if best is None or score > best[0]:
                where = {"primary": field.where([primary]), "foreign": field.where([foreign], GUESS)}
                streams = {"primary": found.primary, "foreign": found.foreign}
                best = score, logs, Guess(**{name: {"where": where[name]} | streams[name] for name in streams})
    return (best[1], best[2]) if best else None


def _both(log: Log, field: _Field, primary: str, foreign: str) -> tuple[dict[str, Log], Guess]:
    """Both streams, each of all kinds that join as one does."""
    parts = {kind: field.part(log, [kind]) for kind in field.kinds}
    alike = _columns(guess(parts[primary], parts[foreign]))
    others = [kind for kind in field.kinds if kind != primary]
    lookers = [kind for kind in others if _columns(guess(parts[primary], parts[kind])) == alike]
    rest = [kind for kind in field.kinds if kind not in lookers]
    named = [kind for kind in rest if _columns(guess(parts[kind], parts[foreign])) == alike]
    logs = {"primary": field.part(log, named), "foreign": field.part(log, lookers)}
    found = guess(logs["primary"], logs["foreign"])
    return logs, Guess({"where": field.where(named)} | found.primary, {"where": field.where(lookers)} | found.foreign)


def narrowed(primary: Log, foreign: Log) -> tuple[dict[str, Log], Guess]:
    """Two logs and what is proposed for them; of each the records that join alone, where a field tells others apart."""
    conditions: dict[str, Choice] = {}
    primary, foreign = _unfolded(primary, foreign)
    named = id_columns(foreign)

    def looked_up(part: Log) -> _Joined:
        ids = id_columns(part)
        lookup = lookup_of(ids, named)
        if lookup is None or _lacking(ids, lookup[0]) > _RARE:
            return 0.0, ()
        known = set(keys_of(ids, lookup[0]))
        return float(sum(key in known for key in keys_of(named, lookup[1]) if key)), lookup

    if not looked_up(primary)[0] and (found := _of_kinds(primary, looked_up)):
        primary, conditions["primary"] = found
    ids = id_columns(primary)

    def looking_up(part: Log) -> _Joined:
        own = id_columns(part)
        if lookup_of(ids, own) is None:
            return 0.0, ()
        tried = guess(primary, part)
        keys = [tried.foreign[name].value for name in ("event_id", "primary_id")]
        if any("FILL_IN" in key or _lacking(own, key) > _RARE for key in keys):
            return 0.0, ()
        return _score(tried, primary, part), _columns(tried)

    if not looking_up(foreign)[0] and (found := _of_kinds(foreign, looking_up)):
        foreign, conditions["foreign"] = found
    whole = with_key(guess(primary, foreign), primary, foreign)
    where = {name: {"where": condition} for name, condition in conditions.items()}
    streams = Guess(where.get("primary", {}) | whole.primary, where.get("foreign", {}) | whole.foreign)
    return {"primary": primary, "foreign": foreign}, streams


def _unfolded(primary: Log, foreign: Log) -> tuple[Log, Log]:
    """Two logs, of either the elements of an array where one of them alone would name an event, or none does."""

    def one_of_several(found: Choice) -> bool:
        return any(name == "FILL_IN" or "[" in name for name in found.value)

    found = guess(primary, foreign)
    if foreign.within and any(map(one_of_several, (found.foreign["event_id"], found.foreign["primary_id"]))):
        tried = guess(primary, foreign.within).foreign
        if not one_of_several(tried["primary_id"]):  # an id that is to be named is better than one of several
            foreign = foreign.within
    if primary.within and one_of_several(found.primary["event_id"]):
        primary = primary.within if lookup_of(id_columns(primary.within), id_columns(foreign)) else primary
    return primary, foreign


_Joined = tuple[float, Sequence[object]]  # how many records of a part join, 0 if not all of its kind do, and by what


def _of_kinds(log: Log, joined: Callable[[Log], _Joined]) -> tuple[Log, Choice] | None:
    """The records of the kind of which the most join, and of those that join alike; None where no field divides so."""
    best: tuple[float, _Field, str] | None = None
    for field in _fields(log):
        if best and not _is_named(field):
            break
        for kind in field.kinds:
            score = joined(field.part(log, [kind]))[0]
            if score and (best is None or score > best[0]):
                best = (score, field, kind)
    if best is None:
        return None
    _, field, kind = best
    how = {one: joined(field.part(log, [one])) for one in field.kinds}
    alike = [one for one in field.kinds if how[one][0] and how[one][1] == how[kind][1]]
    others = [one for one in field.kinds if how[one][0] and one not in alike]
    more = f"; {', '.join(others)} would join too, by other columns: that is another pipeline" if others else ""
    return field.part(log, alike), field.where(alike, GUESS if others else LIKELY, more)


def _lacking(ids: dict[str, list[str | None]], key: Sequence[str]) -> float:
    """The share of records without the columns of a key."""
    keys = keys_of(ids, key)
    return keys.count(None) / max(len(keys), 1)


def _columns(found: Guess) -> list[object]:
    """By which columns two kinds of records are distinguished, and joined."""
    fields = ((found.primary, "event_id"), (found.foreign, "event_id"), (found.foreign, "primary_id"))
    return [side[name].value for side, name in fields]


def _fields(log: Log) -> Iterator[_Field]:
    """Fields of few values, which nearly all records have, likely names first; then those that only some have."""
    found = []
    for name, values in log.columns.items():
        labels = tuple(text_of(value) for value in values)
        counts = Counter(label for label in labels if label)
        if 2 <= len(counts) <= _KINDS and counts.total() >= 0.9 * log.rows and not is_named_id(name):
            found.append(_Field(name, labels, tuple(kind for kind, _ in counts.most_common(_TRIED))))
    found.sort(key=lambda field: not _is_named(field))
    return chain(found[:_FIELDS], _presences(log))


def _presences(log: Log) -> Iterator[_Field]:
    """What some records have and others lack, ids first; of several that the same records have the first."""
    known: set[tuple[str | None, ...]] = set()
    for name in sorted(log.columns, key=lambda name: not is_named_id(name)):
        labels = tuple(_LACKING if value in (None, "") else _THERE for value in log.columns[name])
        if min(labels.count(_THERE), labels.count(_LACKING)) > _RARE * log.rows and labels not in known:
            known.add(labels)
            yield _Field(name, labels, (_THERE, _LACKING), by_presence=True)
        if len(known) == _FIELDS:
            return


def _is_named(field: _Field) -> bool:
    return not field.by_presence and field.name.rsplit(".", 1)[-1].lower() in _NAMES


def _score(found: Guess, primary: Log, foreign: Log) -> float:
    """How many foreign records name a primary one; less where others name none, and where those named come after."""
    own, names = found.primary["event_id"].value, found.foreign["primary_id"].value
    if "FILL_IN" in (*own, *names, *found.foreign["event_id"].value):
        return 0.0
    ids, named = id_columns(primary), id_columns(foreign)
    at = dict(zip_longest(keys_of(ids, own), time_of(primary, ids, own)[1]))
    times = time_of(foreign, named, found.foreign["event_id"].value)[1]
    hits = [(at[key], time) for key, time in zip_longest(keys_of(named, names), times) if key and key in at]
    in_order = sum(before is None or after is None or before <= after for before, after in hits)
    return float(in_order * len(hits) / foreign.rows)
