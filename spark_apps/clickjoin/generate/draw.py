"""Chance, all of it: arrays of queries, clicks and lines, from one seed. Times are microseconds from the start."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clickjoin.generate.traffic import Traffic

MICROS = 1_000_000
QUERIES, CLICKS = 0, 1
GOOD, REPEAT = 0, 1
BROKEN = (2, 3, 4, 5, 6)  # see lines.damaged
REPEAT_WITHIN = 10.0
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Lines:
    """One element a line, in order of writing: when, stream, event (its index), GOOD or REPEAT or BROKEN, file."""

    when: Ints
    stream: Ints
    event: Ints
    kind: Ints
    file: Ints

    def __len__(self) -> int:
        """Number of lines."""
        return len(self.when)


@dataclass(frozen=True)
class EventDraw:
    """Event times, strictly growing, and each event's file; of a click also its query, and whether it is an orphan."""

    query_time: Ints
    query_file: Ints
    click_time: Ints
    click_file: Ints
    click_query: Ints
    orphan: NDArray[np.bool_]
    lines: Lines


def draw(traffic: Traffic) -> EventDraw:
    """All of the traffic; the same options always give the same arrays."""
    chance = np.random.default_rng(traffic.seed)
    span = traffic.seconds * MICROS
    query_time = growing(np.sort(chance.random(traffic.queries) * span).astype(np.int64))
    query = _queries_of_clicks(traffic, chance)
    delay = chance.lognormal(np.log(traffic.click_delay), traffic.click_spread, traffic.clicks)
    delay = np.minimum(delay, traffic.click_delay_max)
    moment = query_time[query] + np.maximum((delay * MICROS).astype(np.int64), 1)
    if traffic.live:  # it ends when it says: a click that would come after that comes somewhere before
        left = np.maximum(span - query_time[query], 1)
        over = moment > span
        moment[over] = (query_time[query] + 1 + (chance.random(traffic.clicks) * left).astype(np.int64))[over]
    order = np.argsort(moment, kind="stable")
    click_time = growing(moment[order])
    orphan = np.zeros(traffic.clicks, dtype=bool)
    orphan[_some(traffic.clicks, traffic.orphans, chance)] = True
    query_file, click_file = (chance.integers(traffic.files, size=n) for n in (traffic.queries, traffic.clicks))
    late = np.zeros(traffic.queries, dtype=np.int64)
    late[_some(traffic.queries, traffic.late, chance)] = int(traffic.late_seconds * MICROS)
    queries = _lines(QUERIES, query_time + late, query_file, traffic, chance)
    clicks = _lines(CLICKS, click_time, click_file, traffic, chance)
    lines = _in_order((queries, clicks))
    return EventDraw(query_time, query_file, click_time, click_file, query[order], orphan, lines)


def growing(times: Ints) -> Ints:
    """Sorted times made distinct: each at least one more than the one before."""
    steps = np.arange(len(times))
    return np.maximum.accumulate(times - steps) + steps if len(times) else times


def _queries_of_clicks(traffic: Traffic, chance: np.random.Generator) -> Ints:
    """Index of each click's query: rank r is chosen in proportion to r^-zipf, and ranks lie anywhere in time."""
    reach = np.cumsum(np.arange(1, traffic.queries + 1, dtype=float) ** -traffic.zipf)
    rank = np.searchsorted(reach, chance.random(traffic.clicks) * reach[-1], side="right")
    place = chance.permutation(traffic.queries)
    return np.asarray(place[np.minimum(rank, traffic.queries - 1)])


def _some(n: int, fraction: float, chance: np.random.Generator) -> Ints:
    # A fixed number rather than a toss for each, so that counts can be stated beforehand.
    return chance.choice(n, round(n * fraction), replace=False) if n else np.empty(0, dtype=np.int64)


def _lines(stream: int, when: Ints, file: Ints, traffic: Traffic, chance: np.random.Generator) -> list[Ints]:
    """Lines of one stream: when, stream, event, kind, file; events first, so that equal times keep a repeat behind."""
    n = len(when)
    written = when + (chance.random(n) * traffic.disorder * MICROS).astype(np.int64)
    again, damaged = _some(n, traffic.duplicates, chance), _some(n, traffic.broken, chance)
    after = (chance.random(len(again)) * REPEAT_WITHIN * MICROS).astype(np.int64)
    if traffic.live:
        after = np.minimum(after, np.maximum(int(traffic.seconds * MICROS) - written[again], 0))
    kinds = np.resize(BROKEN, len(damaged))
    others = chance.integers(traffic.files, size=len(again) + len(damaged))
    event = np.concatenate([np.arange(n), again, damaged])
    return [
        np.concatenate([written, written[again] + after, written[damaged]]),
        np.full(len(event), stream),
        event,
        np.concatenate([np.full(n, GOOD), np.full(len(again), REPEAT), kinds]),
        np.concatenate([file, others]),
    ]


def _in_order(streams: tuple[list[Ints], list[Ints]]) -> Lines:
    when, *rest = (np.concatenate(columns) for columns in zip(*streams, strict=True))
    order = np.argsort(when, kind="stable")
    return Lines(when[order], *(column[order] for column in rest))
