"""Which columns of logs are ids and times, and by which ones two of them join: guesses, each with its reason."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import median
from typing import Any

from clickjoin.config import Files
from clickjoin.model.ids import ISO, MICROS, embedded_micros, uuid7_micros
from clickjoin.model.zones import hours_off
from clickjoin.proposal.columns import (
    DateAndTime,
    Time,
    as_time,
    date_and_time,
    distinct_share,
    is_fraction,
    is_named_id,
    texts,
    time_in_ids,
)
from clickjoin.proposal.logs import Log

SURE, LIKELY, GUESS = "sure", "likely", "a guess"
_UNIQUE, _MOST_PARTS = 0.97, 3
_WIDE = 0.1  # of the primary ids that foreign records could name, so many are named at least
_MOST_IDS = (24, 8, 8)  # columns that are tried alone, in pairs, in threes
_HOUR = 3600
_LEAST = 600  # seconds that clocks do not differ by: a zone does


@dataclass(frozen=True)
class Choice:
    """What a field of the pipeline's file is proposed to be, how sure that is, and why.

    `local`: it is a time whose zone nothing tells.
    """

    value: Any
    sure: str
    why: str
    local: bool = False


@dataclass(frozen=True)
class Guess:
    """What is proposed for the fields that name columns, by stream."""

    primary: dict[str, Choice]
    foreign: dict[str, Choice]


def guess(primary: Log, foreign: Log) -> Guess:
    """Propose ids, times and the look-up of two logs; `identity` in `foreign` where its sender stamps events again."""
    ids, named = id_columns(primary), id_columns(foreign)
    lookup = lookup_of(ids, named)
    primary_id = (
        Choice(lookup[0], *_of_lookup(lookup, ids, named)) if lookup else own_id(ids, avoid=_numbers_of_time(primary))
    )
    at_primary, micros = time_of(primary, ids, primary_id.value)
    foreign_id = own_id(named, avoid=(*(lookup[1] if lookup else ()), *_numbers_of_time(foreign)))
    if "FILL_IN" in foreign_id.value:
        again = id_sent_again(foreign, named, avoid=lookup[1] if lookup else ())
        foreign_id = again or _of_elements(foreign, foreign_id)
    at_foreign, event_micros = time_of(foreign, named, foreign_id.value)
    identity: dict[str, Choice] = {}
    if moved := _moved(named, foreign_id.value, event_micros):
        if differ_in_time_alone(foreign, named, foreign_id.value):
            why = f"{moved:,} sampled ids come with more than one time, in records that differ in nothing else"
            identity = {"identity": Choice("id", LIKELY, why)}
        else:
            why = f"{foreign_id.why}; {moved:,} ids come with more than one time, and count once for each"
            foreign_id = Choice(foreign_id.value, LIKELY, f"{why}, unless registry.identity is id")
    names = Choice(lookup[1], primary_id.sure, primary_id.why) if lookup else _unknown("primary_id")
    found = _Found(ids, named, primary_id.value, names.value, micros, event_micros)
    at_named = _primary_time(foreign, at_primary, found)
    if (column := _column_of(at_named)) and column == _column_of(at_foreign):
        others = replace(foreign, columns={name: held for name, held in foreign.columns.items() if name != column})
        own, _ = time_of(others, named, foreign_id.value)
        at_foreign = at_foreign if own.value == "FILL_IN" else own  # what is the primary event's is not its own
    if late := _late(found):
        far = median(found.delays()) < -_LEAST
        at_primary, at_foreign, at_named = (_asked(one, late, far=far) for one in (at_primary, at_foreign, at_named))
    return Guess(
        {"event_id": primary_id, "event_time": at_primary},
        {"event_id": foreign_id, "event_time": at_foreign, "primary_id": names, "primary_time": at_named} | identity,
    )


def _column_of(time: Choice) -> Any:
    """The column of a time, where it is in one."""
    value = time.value.get("column") if isinstance(time.value, dict) else time.value
    return value if value not in ("embedded", "uuid7", "FILL_IN") else None


def _unknown(field: str) -> Choice:
    return Choice(("FILL_IN",), GUESS, f"no column of the one log holds ids of the other; name the one for {field}")


Ids = dict[str, list[str | None]]
Lookup = tuple[tuple[str, ...], tuple[str, ...]]  # columns of the primary log, and of the foreign one


def id_columns(log: Log) -> Ids:
    """Columns that may be ids: what holds times or fractions is none, unless it is named like one."""
    columns = ((name, values, texts(values)) for name, values in log.columns.items())
    return {
        name: found
        for name, values, found in columns
        if any(found) and (is_named_id(name) or not (is_fraction(found) or _is_time(name, values)))
    }


def _is_time(name: str, values: Sequence[Any]) -> bool:
    time = as_time(name, values)
    return time is not None and not time.by_value  # an order's number, which others name, may be when it was made


def _numbers_of_time(log: Log) -> tuple[str, ...]:
    """Columns that are no ids unless others name them."""
    found = {name: as_time(name, values) for name, values in log.columns.items() if not is_named_id(name)}
    return tuple(name for name, time in found.items() if time and time.by_value)


def keys_of(ids: Ids, names: Sequence[str]) -> list[tuple[str, ...] | None]:
    """Each record's values in some columns; None where one of them is missing."""
    rows = zip(*(ids[name] for name in names), strict=True)
    return [row if None not in row else None for row in rows]


def lookup_of(ids: Ids, named: Ids) -> Lookup | None:
    """Columns of the primary log that are unique together, and those of the foreign one that name them."""
    pairs = [(mine, theirs) for mine, theirs, _ in _alike(ids, named)]
    for count in range(1, _MOST_PARTS + 1):
        best: tuple[float, Lookup | None] = (0.0, None)
        for some in combinations(pairs[: _MOST_IDS[count - 1]], count):
            keys, names = tuple(mine for mine, _ in some), tuple(theirs for _, theirs in some)
            if len(set(keys)) < count or len(set(names)) < count or distinct_share(keys_of(ids, keys)) < _UNIQUE:
                continue
            share, spread = _agreement(keys_of(ids, keys), keys_of(named, names))
            # A number of few values is found among any numbers. Of columns that agree equally well, one that is named
            # like an id comes first, and before others one that is an id of each record.
            score = share + min(spread, _WIDE) + 0.01 * sum(is_named_id(name) for name in (*keys, *names)) / count
            score += distinct_share(keys_of(ids, keys))
            best = max(best, (score, (keys, names)), key=lambda item: item[0]) if share > 0.1 else best
        if best[1]:
            return best[1]
    return None


def _alike(ids: Ids, named: Ids) -> list[tuple[str, str, float]]:
    """Pairs of columns, of the primary and the foreign log, of which the one holds values of the other."""
    found = []
    for mine, values in ids.items():
        known = {value for value in values if value is not None}
        for theirs, others in named.items():
            wanted = [value for value in others if value is not None]
            share = sum(value in known for value in wanted) / max(len(wanted), 1)
            if share > 0.1 and len(known) > 1:
                found.append((mine, theirs, share))
    found.sort(key=lambda pair: (-pair[2], pair[0] != pair[1]))
    return found


def _agreement(ids: Sequence[Any], named: Sequence[Any]) -> tuple[float, float]:
    """Share of the keys of foreign records that are primary ids, and how many of these they could name they do."""
    known, wanted = set(ids) - {None}, [key for key in named if key]
    found = [key for key in wanted if key in known]
    return len(found) / max(len(wanted), 1), len(set(found)) / max(min(len(known), len(wanted)), 1)


def _of_lookup(lookup: Lookup, ids: Ids, named: Ids) -> tuple[str, str]:
    known, wanted = set(keys_of(ids, lookup[0])) - {None}, [key for key in keys_of(named, lookup[1]) if key]
    share, spread = _agreement(keys_of(ids, lookup[0]), wanted)
    found = [key for key in wanted if key in known]
    why = (
        f"{len(found):,} of {len(wanted):,} sampled foreign records name one of {len(known):,} primary ids by it, "
        f"{len(set(found)):,} different ones"
    )
    repeats = sum(key is not None for key in keys_of(ids, lookup[0])) - len(known)
    why += f"; {repeats:,} primary records repeat an id: the latest before the click is joined" if repeats else ""
    return (GUESS if share <= 0.1 else LIKELY if share <= 0.5 or spread < _WIDE else SURE), why


def own_id(ids: Ids, avoid: tuple[str, ...] = ()) -> Choice:
    """The column, or the fewest columns, that differ from record to record; such as are named like ids first."""
    candidates = [name for name in ids if name not in avoid and any(value is not None for value in ids[name])]
    candidates.sort(key=lambda name: (not is_named_id(name), time_in_ids(ids[name]) is None))
    for names in _sets(candidates):
        key = keys_of(ids, names)
        share = distinct_share(key)
        if share >= _UNIQUE:
            is_id = all(is_named_id(name) or time_in_ids(ids[name]) for name in names)
            sure = SURE if is_id and len(names) == 1 else LIKELY if is_id else GUESS
            return Choice(names, sure, f"{len(set(key) - {None}):,} of {len(key):,} sampled records differ in it")
    return Choice(("FILL_IN",), GUESS, "no column, nor three together, differs in nearly all records")


def _of_elements(log: Log, found: Choice) -> Choice:
    """An id that was not found, where its other half may lie around the array of the records."""
    array = log.source.records if isinstance(log.source, Files) else ""
    said = f"; what lies around the array `{array}` is in none of its elements: write it into each"
    return replace(found, why=found.why + said) if array else found


def id_sent_again(log: Log, ids: Ids, avoid: tuple[str, ...] = ()) -> Choice | None:
    """A column named like an id, of which records with the same value differ in nothing but their times.

    So the sender has sent events again with new times: no column differs from record to record.
    """
    shares = {name: distinct_share(values) for name, values in ids.items() if is_named_id(name) and name not in avoid}
    for name in sorted(shares, key=lambda name: -shares[name]):
        if shares[name] >= _MOSTLY and differ_in_time_alone(log, ids, (name,)):
            known = [value for value in ids[name] if value is not None]
            why = f"{len(set(known)):,} different ones in {len(known):,} sampled records; the others were sent again"
            return Choice((name,), LIKELY, why)
    return None


def differ_in_time_alone(log: Log, ids: Ids, key: Sequence[str]) -> bool:
    """Whether records of the same id are the same in all that is no time."""
    held = [values for name, values in log.columns.items() if name not in key and not as_time(name, values)]
    found: dict[Any, list[Any]] = {}
    rows = zip(*held, strict=True) if held else iter([()] * log.rows)
    pairs = ((one, list(row)) for one, row in zip(keys_of(ids, key), rows, strict=True) if one)
    return all(found.setdefault(one, row) == row for one, row in pairs)


def _sets(names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    for count in range(1, _MOST_PARTS + 1):
        yield from combinations(names[: _MOST_IDS[count - 1]], count)


def time_of(log: Log, ids: Ids, key: Sequence[str]) -> tuple[Choice, tuple[int | None, ...]]:
    """How the event time is known, and the times."""
    if "FILL_IN" not in key and (rule := _embedded(ids, key)):
        whole = [":".join(part) if part else "" for part in keys_of(ids, key)]
        micros = embedded_micros if rule == "embedded" else uuid7_micros
        return Choice(rule, SURE, "the ids hold their time"), tuple(micros(value) for value in whole)
    found = [time for name, values in log.columns.items() if name not in key and (time := as_time(name, values))]
    if parted := date_and_time(log.columns, found):
        return _of_two(parted), parted.time.micros
    if not found:
        return Choice("FILL_IN", GUESS, "no column looks like a time"), ()
    # One in a field's JSON is the event's own; one beside it tells when that was sent on.
    found.sort(key=lambda time: (not time.named, bool(time.others), not log.opens(time.name), -len(set(time.micros))))
    others = ", ".join(time.name for time in found[1:4])
    sure = LIKELY if others or not found[0].named else SURE
    return _time_choice(found[0], sure, f"; other times are in {others}" if others else ""), found[0].micros


def _embedded(ids: Ids, key: Sequence[str]) -> str | None:
    parts = [":".join(row) if row else None for row in keys_of(ids, key)]
    return time_in_ids(parts)


def _of_two(parted: DateAndTime) -> Choice:
    one = _time_choice(parted.time, LIKELY, "")
    form = {**one.value, "column": list(parted.names)} if parted.time.form else {"column": list(parted.names)}
    return Choice(
        form,
        one.sure,
        f"date and time of day are two columns{one.why[one.why.find(';') :] if parted.time.form else ''}",
        one.local,
    )


def _time_choice(time: Time, sure: str, more: str) -> Choice:
    known = sum(at is not None for at in time.micros)
    why = f"{known:,} of {len(time.micros):,} sampled records hold a time in it{more}"
    if time.form is None:
        bare = f"; it names no zone: UTC, unless {{column: {time.name}, zone: …}} says another" if time.bare else ""
        return Choice(time.name, LIKELY if time.bare and sure == SURE else sure, why + bare, time.bare)
    zone = {} if "%z" in time.form else {"zone": time.zone or "UTC"}
    doubt = f"; it could also be {time.others[0]}" if time.others else ""
    if time.zone:
        doubt += f"; the zones' names behind them are those of {time.zone}, or of another one with the same clock"
    else:
        doubt += "; say which zone its clock is in" if zone else ""
    form: Any = [ISO, time.form] if time.mixed else time.form
    sure, local = GUESS if time.others else LIKELY, bool(zone) and not time.zone
    return Choice({"column": time.name, "format": form, **zone}, sure, f"{why}{doubt}", local)


@dataclass(frozen=True)
class _Found:
    ids: Ids
    named: Ids
    key: tuple[str, ...]
    names: tuple[str, ...]
    primary_micros: tuple[int | None, ...]
    foreign_micros: tuple[int | None, ...]

    def matches(self) -> list[tuple[int, int]]:
        """Numbers of foreign records and of the primary records that they name."""
        if "FILL_IN" in (*self.key, *self.names):
            return []
        place = {key: at for at, key in enumerate(keys_of(self.ids, self.key)) if key}
        return [(at, place[key]) for at, key in enumerate(keys_of(self.named, self.names)) if key in place]

    def delays(self) -> list[float]:
        """How many seconds foreign events lie after the primary ones that they name."""
        if not self.primary_micros or not self.foreign_micros:
            return []
        pairs = [(self.foreign_micros[at], self.primary_micros[other]) for at, other in self.matches()]
        return [(own - of) / MICROS for own, of in pairs if own is not None and of is not None]


def _primary_time(foreign: Log, primary: Choice, found: _Found) -> Choice:
    """How a foreign record tells its primary event's time: in the id, in a column, or only about."""
    if primary.value in ("embedded", "uuid7"):
        return Choice(primary.value, primary.sure, "the primary ids hold their time")
    matches = [(at, found.primary_micros[other]) for at, other in found.matches() if found.primary_micros]
    matches = [(at, micros) for at, micros in matches if micros is not None]
    for name, values in foreign.columns.items():
        time = as_time(name, values)
        if time and matches and all(time.micros[at] == micros for at, micros in matches):
            form = _time_choice(time, SURE, "")
            why = f"it is the primary event's time in all {len(matches):,}"
            return Choice(form.value, SURE, why, form.local)
    delays = found.delays()
    if not delays:
        return Choice({"lookback": "1d"}, GUESS, "how long a primary event lies before its foreign one is not known")
    longest = max(0.0, max(delays) + hours_off([-delay for delay in delays]) * _HOUR)
    hours = max(round(2 * longest / _HOUR + 0.5), 1)
    after = sum(delay < 0 for delay in delays)
    late = f", and {after:,} after them" if after else ""
    why = f"sampled primary events lie up to {longest:,.0f} s before their clicks{late}; twice that is looked back"
    return Choice({"lookback": f"{hours}h"}, LIKELY, why)


def _late(found: _Found) -> str:
    """That most sampled primary events lie after their foreign ones, and how far; empty where they do not."""
    gaps = [-delay for delay in found.delays()]
    after = [gap for gap in gaps if gap > 1]
    if 2 * len(after) <= len(gaps):
        return ""
    many = f"all {len(gaps):,}" if len(after) == len(gaps) else f"{len(after):,} of {len(gaps):,}"
    longest = hours_off(after) * _HOUR or max(after)
    text = f"{longest / _HOUR:.3g} h" if longest >= _HOUR / 2 else f"{longest:,.0f} s"
    return f"{many} sampled primary events lie up to {text} after their clicks"


def _asked(time: Choice, late: str, *, far: bool) -> Choice:
    """A time with FILL_IN for a zone that nothing tells, where primary events lie `far` after their clicks."""
    if isinstance(time.value, dict) and "lookback" in time.value:
        return replace(time, sure=GUESS, why=f"{late}: a zone or a clock is wrong")
    if not (time.local and far):
        return time
    form = time.value if isinstance(time.value, dict) else {"column": time.value}
    names = [form["column"]] if isinstance(form["column"], str) else form["column"]
    why = f"{late}: the zone of {' and '.join(f'`{name}`' for name in names)} is probably not UTC"
    return replace(time, value=form | {"zone": "FILL_IN"}, sure=GUESS, why=why)


_MOSTLY = 0.3  # of the records of a stream with repeats, so many have an id of their own


def guess_one(log: Log) -> dict[str, Choice]:
    """Propose `event_id`, `event_time` and, where an id comes with several times, `identity`."""
    ids = id_columns(log)
    times = _numbers_of_time(log)
    event_id = _id_of_one({name: values for name, values in ids.items() if name not in times})
    event_time, micros = time_of(log, ids, event_id.value)
    if isinstance(event_time.value, str) and event_time.value in ("embedded", "uuid7"):
        return {"event_id": event_id, "event_time": event_time}
    found = {"event_id": event_id, "event_time": event_time}
    if micros and (moved := _moved(ids, event_id.value, micros)):
        return found | {"identity": Choice("id", GUESS, f"{moved:,} sampled ids come with more than one time")}
    return found


def _id_of_one(ids: Ids) -> Choice:
    """The column named like an id that differs the most: repeats are what the pipeline is for."""
    shares = {name: len(set(values)) / len(values) for name, values in ids.items() if None not in values}
    named = [name for name in shares if is_named_id(name) and shares[name] >= _MOSTLY]
    if not named:
        return own_id(ids)
    best = max(named, key=lambda name: (time_in_ids(ids[name]) is not None, shares[name]))
    values = ids[best]
    others = [name for name in named if name != best]
    why = f"{len(set(values)):,} different ones in {len(values):,} sampled records"
    doubt = f"; it could also be {', '.join(others)}" if others else ""
    return Choice((best,), LIKELY if others else SURE, why + doubt)


def _moved(ids: Ids, key: Sequence[str], micros: Sequence[int | None]) -> int:
    """How many ids come with more than one time; 0 where no times are known."""
    if "FILL_IN" in key or not micros:
        return 0
    times: dict[Any, set[int | None]] = defaultdict(set)
    for *parts, at in zip(*(ids[name] for name in key), micros, strict=True):
        times[tuple(parts)].add(at)
    return sum(len(found) > 1 for found in times.values())
