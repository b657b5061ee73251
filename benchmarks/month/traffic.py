"""Events of a month: Zipf over keys, four time zones, weekends; spikes, dips, a key that is gone; and the truth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

MINUTE, HOUR, DAY = 60 * 10**6, 3600 * 10**6, 86400 * 10**6
BEGIN = 20_454 * DAY  # a Thursday
DAYS, LEARNED = 30, 7  # days; none is changed in the first
ZONES = np.array([0, 2, 5, 9]) * HOUR  # a key's evening comes so much later
WEEKEND = 0.7
_HIGH = 1.0 + 0.8  # of a day's curve


@dataclass(frozen=True)
class Change:
    """What was done to a key, in microseconds; `more`: events a minute that came in addition, 0 of a dip."""

    key: int
    kind: str
    start: int
    end: int
    more: float = 0


def shape(times: Ints, keys: Ints) -> npt.NDArray[np.float64]:
    """How much of its busiest a key's traffic is."""
    local = times - ZONES[keys % len(ZONES)]
    day = 1 + 0.8 * np.sin((local % DAY) / DAY * 2 * np.pi - np.pi / 2)
    weekend = (local // DAY) % 7 >= 5
    return day / _HIGH * np.where(weekend, WEEKEND, 1.0)  # type: ignore[no-any-return]


class Traffic:
    """So many events of so many keys, and what was changed in them."""

    def __init__(self, events: int, keys: int, spikes: int, dips: int, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        weights = 1 / np.arange(1, keys + 1)
        self._cumulated = np.cumsum(weights / weights.sum())
        mean = 1 / _HIGH * (5 + 2 * WEEKEND) / 7
        self._per_micro = events / (DAYS * DAY) / mean  # of all keys at their busiest
        self.rates = weights / weights.sum() * self._per_micro * mean  # of each key, a microsecond
        self.gone = Change(10, "dip", BEGIN + 25 * DAY + 9 * HOUR, BEGIN + 2 * DAYS * DAY)
        self.changes = [*self._dips(dips), self.gone, *self._spikes(spikes, keys)]

    def _moment(self, before: int) -> int:
        return int(self._rng.integers(BEGIN + LEARNED * DAY, BEGIN + DAYS * DAY - before) // MINUTE * MINUTE)

    def _spikes(self, count: int, keys: int) -> list[Change]:
        """Ten minutes of far more than usual, of keys large and small that have no dip."""
        names = np.unique(np.geomspace(150, keys - 1, 2 * count).astype(int))
        found = []
        for key in self._rng.choice(names, count, replace=False):
            usual = self.rates[key] * MINUTE
            more = max(30, 2 * usual, 10 * usual**0.5) * self._rng.uniform(1, 3)
            start = self._moment(HOUR)
            found.append(Change(int(key), "spike", start, start + 10 * MINUTE, more))
        return found

    def _dips(self, count: int) -> list[Change]:
        """Some hours without an event in which at least 80 were to come, of keys that are large enough."""
        found = list[Change]()
        while len(found) < count:
            key, length = int(self._rng.integers(0, 100)), int(self._rng.integers(2, 13)) * HOUR
            start = self._moment(length)
            at = np.arange(start, start + length, 10 * MINUTE)
            expected = self._cumulated_of(key) * self._per_micro * shape(at, np.full(len(at), key)).sum() * 10 * MINUTE
            apart = all(
                change.key != key or change.end + 2 * DAY < start or start + length + 2 * DAY < change.start
                for change in found
            )
            if expected >= 80 and key != self.gone.key and apart:
                found.append(Change(key, "dip", start, start + length))
        return found

    def _cumulated_of(self, key: int) -> float:
        return float(self._cumulated[key] - (self._cumulated[key - 1] if key else 0))

    def between(self, begin: int, end: int) -> tuple[Ints, Ints]:
        """Times and keys of the events in [begin, end), by time."""
        count = int(self._rng.poisson(self._per_micro * (end - begin)))
        times = self._rng.integers(begin, end, count)
        keys = np.searchsorted(self._cumulated, self._rng.random(count)).clip(0, len(self._cumulated) - 1)
        kept = self._rng.random(count) < shape(times, keys)
        times, keys = times[kept], keys[kept]
        for change in self.changes:
            if change.start >= end or change.end <= begin:
                continue
            if change.kind == "dip":
                stays = (keys != change.key) | (times < change.start) | (times >= change.end)
                times, keys = times[stays], keys[stays]
            else:
                low, high = max(begin, change.start), min(end, change.end)
                more = self._rng.integers(low, high, self._rng.poisson(change.more * (high - low) / MINUTE))
                times, keys = np.append(times, more), np.append(keys, np.full(len(more), change.key))
        order = np.argsort(times, kind="stable")
        return times[order], keys[order]


class Lines:
    """Events as log lines: ids of their own, some sent twice, out of order by some minutes."""

    def __init__(self, seed: int, twice: float, disorder: int) -> None:
        self._rng, self._twice, self._disorder = np.random.default_rng(seed), twice, disorder
        self._count = self.repeats = 0
        self._again: list[str] = []

    def of(self, times: Ints, keys: Ints) -> list[str]:
        """Lines of some events, with the repeats of the lines before."""
        numbers = np.arange(self._count, self._count + len(times))
        self._count += len(times)
        written = [
            f'{{"event_id":"10.0.0.1:{number}:{time}","item":"item-{key}"}}'
            for number, time, key in zip(numbers.tolist(), times.tolist(), keys.tolist(), strict=True)
        ]
        at = times + self._rng.integers(0, self._disorder, len(times))
        again = [written[nth] for nth in np.flatnonzero(self._rng.random(len(written)) < self._twice)]
        self.repeats += len(again)
        lines = self._again + [written[nth] for nth in np.argsort(at, kind="stable")] + again[::2]
        self._again = again[1::2]  # half of them come with the next lines
        return lines


def score(changes: list[Change], signals: list[dict[str, Any]], window: int) -> dict[str, Any]:
    """Recall and precision of signals (key, kind, window_start and window_end in microseconds) after the first week.

    A signal is right where it is of a change's key and kind, and begins in it, or a window before; each change counts
    once, and a second signal of one counts as false.
    """
    found, false = set[int](), list[dict[str, Any]]()
    by_key: dict[tuple[str, str], list[tuple[int, Change]]] = {}
    for nth, change in enumerate(changes):
        by_key.setdefault((f"item-{change.key}", change.kind), []).append((nth, change))
    after = [row for row in signals if row["window_start"] >= BEGIN + LEARNED * DAY]
    for row in sorted(after, key=lambda row: row["window_start"]):
        near = by_key.get((row["key"], row["kind"]), [])
        hit = [nth for nth, change in near if _fits(change, row, window)]
        if hit and hit[0] not in found:
            found.add(hit[0])
        else:
            false.append(row)
    missed = [change for nth, change in enumerate(changes) if nth not in found]
    return {
        "changes": len(changes), "found": len(found), "false": len(false), "first_week": len(signals) - len(after),
        "recall": round(len(found) / len(changes), 4),
        "precision": round(len(found) / max(len(found) + len(false), 1), 4),
        "missed": [change.__dict__ for change in missed][:20],
        "false_ones": [{name: row[name] for name in ("key", "kind", "window_start", "count", "expected")}
                       for row in false][:20],
    }  # fmt: skip


def _fits(change: Change, row: dict[str, Any], window: int) -> bool:
    if change.kind == "spike":
        return change.start - window <= row["window_start"] < change.end
    # A dip's run begins with the last windows that happened to be short.
    return bool(row["window_start"] < change.end and row["window_end"] > change.start)
