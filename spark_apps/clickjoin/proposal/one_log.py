"""A log of several kinds of records: the field that tells them apart, and which kind looks the other up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations, zip_longest

from clickjoin.model.errors import ConfigError
from clickjoin.model.where import text_of
from clickjoin.proposal.columns import is_named_id
from clickjoin.proposal.guess import LIKELY, Choice, Guess, guess, id_columns, keys_of, lookup_of, time_of
from clickjoin.proposal.logs import Log

_KINDS = 20  # values of a field, at most, that may be kinds of records
_TRIED = 6  # of them, the most frequent
_FIELDS = 8
_NAMES = ("type", "event", "event_name", "event_type", "kind", "action", "name")


def divided(log: Log) -> tuple[dict[str, Log], Guess]:
    """The records of both streams of a log, and what is proposed for them, `where` too.

    Errors: ConfigError where no field tells two kinds of records apart of which one names the other's ids.
    """
    best: tuple[float, str, str, str] | None = None
    for field, kinds in _fields(log):
        if best and not _is_named(field):
            break  # a field that is called so divides the log
        parts = {kind: _of_kinds(log, field, [kind]) for kind in kinds}
        ids = {kind: id_columns(part) for kind, part in parts.items()}
        for primary, foreign in permutations(kinds, 2):
            if lookup_of(ids[primary], ids[foreign]) is None:
                continue
            score = _score(guess(parts[primary], parts[foreign]), parts[primary], parts[foreign])
            if score and (best is None or score > best[0]):
                best = (score, field, primary, foreign)
    if best is None:
        raise ConfigError(
            f"{log.source.path}: is named for both streams, and no field tells kinds of records apart of which one "
            "names the ids of another",
            remedy="Give each stream's own files; or write the pipeline's file by hand, with `where` in both streams",
        )
    _, field, primary, foreign = best
    kinds = dict(_fields(log))[field]
    parts = {kind: _of_kinds(log, field, [kind]) for kind in kinds}
    alike = _columns(guess(parts[primary], parts[foreign]))
    lookers = [kind for kind in kinds if kind != primary and _columns(guess(parts[primary], parts[kind])) == alike]
    named = [kind for kind in kinds if kind not in lookers and _columns(guess(parts[kind], parts[foreign])) == alike]
    logs = {"primary": _of_kinds(log, field, named), "foreign": _of_kinds(log, field, lookers)}
    found = guess(logs["primary"], logs["foreign"])
    return logs, Guess(
        {"where": _where(log, field, named)} | found.primary, {"where": _where(log, field, lookers)} | found.foreign
    )


def _columns(found: Guess) -> list[object]:
    """By which columns two kinds of records are distinguished, and joined."""
    fields = ((found.primary, "event_id"), (found.foreign, "event_id"), (found.foreign, "primary_id"))
    return [side[name].value for side, name in fields]


def _where(log: Log, field: str, kinds: list[str]) -> Choice:
    counts = Counter(map(text_of, log.columns[field]))
    others = ", ".join(f"{value} {count:,}" for value, count in counts.most_common(_TRIED))
    return Choice({field: tuple(kinds)}, LIKELY, f"{field} tells records of this log apart: {others}")


def _fields(log: Log) -> Iterator[tuple[str, list[str]]]:
    """Fields of few values, which nearly all records have, and the most frequent of these; likely names first."""
    found = []
    for name, values in log.columns.items():
        counts = Counter(text for value in values if (text := text_of(value)))
        if 2 <= len(counts) <= _KINDS and counts.total() >= 0.9 * log.rows and not is_named_id(name):
            found.append((name, [kind for kind, _ in counts.most_common(_TRIED)]))
    found.sort(key=lambda item: not _is_named(item[0]))
    return iter(found[:_FIELDS])


def _is_named(field: str) -> bool:
    return field.rsplit(".", 1)[-1].lower() in _NAMES


def _of_kinds(log: Log, field: str, kinds: list[str]) -> Log:
    rows = [at for at, value in enumerate(log.columns[field]) if text_of(value) in kinds]
    columns = {name: [values[at] for at in rows] for name, values in log.columns.items() if name != field}
    held = {name: values for name, values in columns.items() if any(value is not None for value in values)}
    return replace(log, columns=held, rows=len(rows))


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
