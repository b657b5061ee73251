"""What a key's traffic should be: a mean for each hour of the day, a factor for each day of the week, a recent ratio.

Exponential smoothing with seasonal terms (Holt and Winters; Hyndman and Athanasopoulos, Forecasting, chapter 8), with
multiplicative days. An hour is learned when it is over, in one step, so what is expected of a window never depends on
when it is asked. Numbers are of 32 bits at each step, as they are kept: a state that was stored and read is the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

HOURS, DAYS = 24, 7
LEAST_NOISE, MOST_NOISE = np.float32(0.05**2), np.float32(0.02)  # of a count's variance, in squares of what is expected
MOST_RATIO = 3
_SOME = 10  # events that an hour's ratio to what was expected is damped by
_MANY = 50  # expected events from which an hour says something of noise, and a day of its factor

# A key: `since`, `last` and `cursor` are windows: the first and last with an event, and the next that is not final yet.
# `run_…`: windows of late that all fell short, see spikes.py. `learned`: events of this hour, without what stood out.
STATE = np.dtype([
    ("cursor", "<i8"), ("since", "<i8"), ("last", "<i8"), ("spike_until", "<i8"), ("dip_until", "<i8"),
    ("run_from", "<i8"), ("run_expected", "<i8"), ("run_count", "<i8"), ("run_reported", "<i8"),
    ("learned", "<i8"), ("day_count", "<i8"),
    ("day_expected", "<f4"), ("level", "<f4"), ("ratio", "<f4"), ("noise", "<f4"), ("hours", "<f4", HOURS),
    ("days", "<f4", DAYS),
])  # fmt: skip
Keys = Any  # an array of STATE


def begun(windows: npt.NDArray[np.int64]) -> Keys:
    """Keys of whom nothing is known, at the windows of their first events."""
    keys = np.zeros(len(windows), STATE)
    for name in ("cursor", "since", "last", "run_from"):
        keys[name] = windows
    keys["ratio"], keys["noise"], keys["days"] = 1, LEAST_NOISE, 1
    return keys


class Seasonal:
    """Expectations of keys, and what is learned of each hour. `per_hour`: windows of an hour."""

    def __init__(self, per_hour: int, *, weekly: bool, memory: int) -> None:
        """`memory`: days (and a quarter of it: weeks) after which what was learned counts as much as what comes."""
        self.per_hour, self.weekly, self.memory = per_hour, weekly, memory

    def seen(self, keys: Keys, hours: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """How often an hour of the day has been learned before one; below 0 in a key's first hour."""
        return np.floor_divide(hours - keys["since"] // self.per_hour - 1, HOURS)  # type: ignore[no-any-return]

    def of_hour(self, keys: Keys, hours: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        """Events that are expected in an hour."""
        return self._base(keys, hours) * self._factor(keys, hours) * keys["ratio"]  # type: ignore[no-any-return]

    def most(self, keys: Keys) -> npt.NDArray[np.float32]:
        """More than is expected in any hour, now or until something comes."""
        return keys["hours"].max(axis=1) * keys["days"].max(axis=1) * MOST_RATIO  # type: ignore[no-any-return]

    def most_a_day(self, keys: Keys) -> npt.NDArray[np.float32]:
        """The same of a day; the events of an hour that is not over are expected again a day later."""
        sums = keys["hours"].sum(axis=1) + keys["learned"].astype(np.float32)
        return sums * keys["days"].max(axis=1) * MOST_RATIO  # type: ignore[no-any-return]

    def learn(self, keys: Keys, hours: npt.NDArray[np.int64]) -> None:
        """Take in an hour that is over, of all these keys; their `learned` is 0 then."""
        count, factor, slots = keys["learned"].astype(np.float32), self._factor(keys, hours), hours % HOURS
        base, seen = self._base(keys, hours) * factor, self.seen(keys, hours)
        whole = seen >= 0  # of a key's first hour only a part is known
        self._learn_ratio(keys, seen >= 1, count, base)
        rows = np.arange(len(keys))
        old = keys["hours"][rows, slots]
        share = np.float32(1) / np.clip(seen + 1, 1, self.memory).astype(np.float32)
        keys["hours"][rows, slots] = np.where(whole, old + (count / factor - old) * share, old)
        first_day = whole & (seen < 1)
        age = np.clip(hours - keys["since"] // self.per_hour, 1, HOURS).astype(np.float32)
        keys["level"] = np.where(first_day, keys["level"] + (count - keys["level"]) / age, keys["level"])
        self._learn_day(keys, hours, np.where(seen >= 1, old, 0))
        keys["learned"] = 0

    def quiet_day(self, keys: Keys, first: npt.NDArray[np.int64]) -> None:
        """What `learn` does in each hour of a day without an event, for keys that expect less than one in any hour.

        `first`: the day's first hour. Such keys learn nothing of ratio, noise or day.
        """
        for hour in range(HOURS):
            share = np.float32(1) / np.clip(self.seen(keys, first + hour) + 1, 1, self.memory).astype(np.float32)
            slots = (first + hour) % HOURS
            old = keys["hours"][np.arange(len(keys)), slots]
            keys["hours"][np.arange(len(keys)), slots] = old + (np.float32(0) - old) * share

    def _base(self, keys: Keys, hours: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        of_slot = keys["hours"][np.arange(len(keys)), hours % HOURS]
        return np.where(self.seen(keys, hours) >= 1, of_slot, keys["level"])  # type: ignore[no-any-return]

    def _factor(self, keys: Keys, hours: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        return keys["days"][np.arange(len(keys)), hours // HOURS % DAYS]  # type: ignore[no-any-return]

    def _learn_ratio(self, keys: Keys, known: Any, count: Any, base: Any) -> None:
        """How the last hours compare with what was expected, and by how much more than chance they miss it."""
        expected = base * keys["ratio"]
        moved = known & (expected >= 1)
        met = np.clip((count + _SOME) / (base + _SOME), 1 / MOST_RATIO, MOST_RATIO).astype(np.float32)
        excess = np.clip(((count - expected) ** 2 - expected) / np.maximum(expected, 1) ** 2, LEAST_NOISE, MOST_NOISE)
        noisy = known & (expected >= _MANY)
        keys["noise"] = np.where(noisy, keys["noise"] + (excess - keys["noise"]) / HOURS, keys["noise"])
        keys["ratio"] = np.where(moved, keys["ratio"] + np.float32(0.3) * (met - keys["ratio"]), keys["ratio"])

    def _learn_day(self, keys: Keys, hours: npt.NDArray[np.int64], expected: Any) -> None:
        keys["day_count"] += np.where(expected > 0, keys["learned"], 0)
        keys["day_expected"] += expected
        over = hours % HOURS == HOURS - 1
        if not over.any():
            return
        rows, days = np.arange(len(keys)), hours // HOURS % DAYS
        age = np.clip((hours - keys["since"] // self.per_hour) // (HOURS * DAYS) + 1, 1, max(self.memory // 4, 1))
        old = keys["days"][rows, days]
        met = keys["day_count"] / np.maximum(keys["day_expected"], 1)
        learned = old + (np.clip(met, 0.2, 5).astype(np.float32) - old) / age.astype(np.float32)
        takes = over & (keys["day_expected"] >= _MANY) & self.weekly
        keys["days"][rows, days] = np.where(takes, learned, old)
        for name in ("day_count", "day_expected"):
            keys[name] = np.where(over, 0, keys[name])
