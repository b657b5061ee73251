"""Takes keys forward window by window, all of them side by side, to where the watermark is.

Of windows without an event as many as an hour has are taken in one step; sums of what was expected are whole numbers
(of 1/65536 event), so that a stretch that is cut in two adds up to the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from clickjoin.processors.limits import FAR, ONE, REPORTED, Limits, Rows
from clickjoin.processors.packing import Ragged
from clickjoin.processors.seasonal import HOURS, Keys, Seasonal, begun

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]
    Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Rules:
    """Arguments of SpikesAndDips; `window` in microseconds, `ttl`, `warm` and `rest` in windows."""

    window: int
    limits: Limits
    rest: int
    ttl: int
    warm: int


class Walk:
    """Keys on their way. `gone`: those whose state is to be dropped; `keys` is changed."""

    def __init__(self, rules: Rules, model: Seasonal, keys: Keys, items: Ragged, horizon: int, began: int) -> None:
        self.rules, self.model, self.keys, self.items = rules, model, keys, items
        self.horizon, self.began = horizon, began
        self.gone = np.zeros(len(keys), bool)
        ends = np.searchsorted(items.at, np.arange(len(keys) + 1))
        self._next, self._end = ends[:-1].copy(), ends[1:]
        self.limits = rules.limits
        self._reported: list[Rows] = []

    def run(self) -> None:
        """Take all to the horizon, and look at the windows there that are not over."""
        active = np.flatnonzero(self.keys["cursor"] < self.horizon)
        while len(active):
            self._step(active)
            active = active[(self.keys["cursor"][active] < self.horizon) & ~self.gone[active]]
        over = np.flatnonzero(~self.gone & (self.keys["cursor"] >= self.keys["last"] + self.rules.ttl))
        self._forget(over, self._window(over))
        self._look_early()

    def reported(self) -> Rows:
        """Signals, in no order."""
        return np.concatenate([np.zeros(0, REPORTED), *self._reported])

    def per_window(self, keys: Keys, hours: Ints) -> Ints:
        """What is expected of each window of an hour, in 1/65536 event; 0 where it is less than one an hour."""
        of_hour = self.model.of_hour(keys, hours).astype(np.float64)
        each = np.rint(of_hour * (ONE / self.model.per_hour)).astype(np.int64)
        return np.where(of_hour >= 1, each, 0)

    def expectation(self, hours: Ints) -> tuple[Floats, Floats, Floats]:
        """What is expected of a window in these hours of the keys, fewer than what is a dip, more than what a spike."""
        usual, noise = self.per_window(self.keys, hours) / ONE, self.keys["noise"]
        return usual, self.limits.low(usual, noise), self.limits.crossing(usual, noise) - 1.0  # type: ignore[return-value]

    def _step(self, active: Ints) -> None:
        """One hour, or less, of some keys: windows without an event, then one with events, then the hour's end."""
        keys = self.keys[active]
        following = self._window(active)
        ended = keys["last"] + self.rules.ttl
        if (over := keys["cursor"] >= ended).any():
            self._forget(active[over], following[over])
            active, keys, following, ended = active[~over], keys[~over], following[~over], ended[~over]
        limit = np.minimum(np.minimum(following, self.horizon), ended)
        quiet = self._quiet_day(keys, limit)
        if quiet.any():
            some = keys[quiet]
            self.model.quiet_day(some, some["cursor"] // self.model.per_hour)
            some["cursor"] += HOURS * self.model.per_hour
            self.keys[active[quiet]] = some
            active, keys, following, limit = active[~quiet], keys[~quiet], following[~quiet], limit[~quiet]
        hours = keys["cursor"] // self.model.per_hour
        hour_end = (hours + 1) * self.model.per_hour
        expected = self.per_window(keys, hours)
        learned = np.where(self.model.seen(keys, hours) >= 1, expected, 0)
        self._gap(active, keys, learned, np.minimum(limit, hour_end))
        here = (keys["cursor"] == following) & (following < np.minimum(hour_end, self.horizon))
        here &= keys["cursor"] < keys["last"] + self.rules.ttl
        if here.any():
            some = keys[here]
            self._window_with_events(active[here], some, expected[here], learned[here])
            keys[here] = some
        learns = keys["cursor"] == hour_end
        if learns.any():
            some = keys[learns]
            self._cap(some, hours[learns])
            self.model.learn(some, hours[learns])
            keys[learns] = some
        self.keys[active] = keys

    def _cap(self, keys: Keys, hours: Ints) -> None:
        """Of an hour that was too high as a whole no more is learned than would not have been.

        Else a spike of a key that has an event a day would make it miss that many a day later.
        """
        most = self.limits.crossing(self.model.of_hour(keys, hours).astype(np.float64), keys["noise"]) - 1
        known = self.model.seen(keys, hours) >= 1
        keys["learned"] = np.where(known, np.minimum(keys["learned"], most), keys["learned"])

    def _window(self, active: Ints) -> Ints:
        """The next window with events of each, or one that never comes."""
        left = self._next[active] < self._end[active]
        if not len(self.items.window):
            return np.full(len(active), FAR, np.int64)
        return np.where(left, self.items.window[np.minimum(self._next[active], len(self.items.window) - 1)], FAR)

    def _forget(self, over: Ints, following: Ints) -> None:
        """Keys without an event for too long: they are gone, or new where events come again."""
        back = following < FAR
        self.keys[over[back]] = begun(following[back])
        self.gone[over[~back]] = True

    def _quiet_day(self, keys: Keys, limit: Ints) -> npt.NDArray[np.bool_]:
        """Whose next day has no event, and matters so little that it can be taken at once."""
        day = HOURS * self.model.per_hour
        candidates = (keys["cursor"] % day == 0) & (limit - keys["cursor"] >= day)
        if candidates.any():
            hours = keys["cursor"] // self.model.per_hour
            candidates &= (self.model.seen(keys, hours) >= 1) & (self.model.most(keys) < 1)
        return candidates  # type: ignore[no-any-return]

    def _gap(self, active: Ints, keys: Keys, expected: Ints, limit: Ints) -> None:
        """Windows without an event, up to a limit within the hour."""
        length = np.maximum(limit - keys["cursor"], 0)
        grows = (length > 0) & (expected > 0)
        if grows.any():
            some, each, windows = keys[grows], expected[grows], length[grows]
            self._begin_run(some)
            need = self.limits.needed(some["run_count"], some["noise"])
            after = np.maximum(-(-(need - some["run_expected"]) // each), 1)
            first = np.maximum(some["dip_until"], some["since"] + self.rules.warm) - some["cursor"] + 1
            after = np.maximum(after, first)
            tells = (some["run_reported"] == 0) & (after <= windows)
            ends = some["cursor"] + after
            self._tell_dip(active[grows], some, tells, some["run_expected"] + after * each, ends)
            some["run_expected"] += windows * each
            some["learned"] += windows * np.floor(self.limits.low(each / ONE, some["noise"])).astype(np.int64)
            keys[grows] = some
        keys["cursor"] += length

    def _window_with_events(self, active: Ints, keys: Keys, expected: Ints, learned: Ints) -> None:
        """`learned`: what is expected by the same hour of earlier days, and 0 where none is known."""
        at, window = self._next[active], keys["cursor"].copy()
        count, usual = self.items.count[at], expected / ONE
        crossing = self.limits.crossing(usual, keys["noise"])
        many = count >= crossing
        self._tell_spike(active, keys, many & self._may_spike(keys, window), crossing, usual, window)
        keys["spike_until"] = np.where(
            many, np.maximum(keys["spike_until"], window + 1 + self.rules.rest), keys["spike_until"]
        )
        self._run_through(active, keys, learned, count, window)
        low = np.floor(self.limits.low(learned / ONE, keys["noise"])).astype(np.int64)
        first_day = self.model.seen(keys, window // self.model.per_hour) < 1
        keys["learned"] += np.where(first_day, count, np.clip(count, low, np.maximum(crossing - 1, 0)))
        keys["last"] = window
        keys["cursor"] += 1
        self._next[active] += 1

    def _run_through(self, active: Ints, keys: Keys, expected: Ints, count: Ints, window: Ints) -> None:
        """A window that has less than half of what is expected goes on with a run of such; any other ends it."""
        falls_short = 2 * count * ONE < expected
        ends = ~falls_short & (keys["run_reported"] == 1)
        keys["dip_until"] = np.where(
            ends, np.maximum(keys["dip_until"], window + 1 + self.rules.rest), keys["dip_until"]
        )
        for name in ("run_expected", "run_count", "run_reported"):
            keys[name] = np.where(falls_short, keys[name], 0)
        some = keys.copy()
        self._begin_run(some)
        some["run_expected"] += expected
        some["run_count"] += count
        too_few = some["run_expected"] >= self.limits.needed(some["run_count"], some["noise"])
        ready = (window >= some["dip_until"]) & (window >= some["since"] + self.rules.warm)
        # One that ends a run can be too low by itself: then it is a run of one.
        self._tell_dip(active, some, too_few & ready & (some["run_reported"] == 0), some["run_expected"], window + 1)
        alone = ~falls_short & too_few
        some["dip_until"] = np.where(
            alone, np.maximum(some["dip_until"], window + 1 + self.rules.rest), some["dip_until"]
        )
        for name in ("run_expected", "run_count", "run_reported"):
            some[name] = np.where(falls_short, some[name], 0)
        keys[:] = some

    def _begin_run(self, keys: Keys) -> None:
        fresh = (keys["run_expected"] == 0) & (keys["run_count"] == 0)
        keys["run_from"] = np.where(fresh, keys["cursor"], keys["run_from"])

    def _look_early(self) -> None:
        """Windows that have begun by the watermark and are not over: a spike need not wait for their end."""
        if not len(self.items.window):
            return
        rows = np.flatnonzero(self.items.window == self.horizon)
        rows = rows[~self.gone[self.items.at[rows]] & (self.keys["cursor"][self.items.at[rows]] == self.horizon)]
        active = self.items.at[rows]
        keys, window = self.keys[active], self.items.window[rows]
        live = window < keys["last"] + self.rules.ttl
        usual = self.per_window(keys, window // self.model.per_hour) / ONE
        crossing = self.limits.crossing(usual, keys["noise"])
        tells = live & (self.items.count[rows] >= crossing) & self._may_spike(keys, window)
        self._tell_spike(active, keys, tells, crossing, usual, window)
        keys["spike_until"] = np.where(tells, window + 1 + self.rules.rest, keys["spike_until"])
        self.keys[active] = keys

    def _may_spike(self, keys: Keys, window: Ints) -> npt.NDArray[np.bool_]:
        return (window >= keys["spike_until"]) & (window >= self.began + self.rules.warm)  # type: ignore[no-any-return]

    def _tell_spike(self, active: Ints, keys: Keys, tells: Any, count: Ints, expected: Floats, window: Ints) -> None:
        if tells.any():
            noise = keys["noise"][tells]
            spikes = self.limits.spikes(active[tells], window[tells], count[tells], expected[tells], noise)
            self._reported.append(spikes)

    def _tell_dip(self, active: Ints, keys: Keys, tells: Any, expected: Ints, end: Ints) -> None:
        """Note the dips, and in `keys` that they were reported."""
        if tells.any():
            some, usual = keys[tells], expected[tells] / ONE
            dips = self.limits.dips(
                active[tells], some["run_from"], end[tells], some["run_count"], usual, some["noise"]
            )
            self._reported.append(dips)
        keys["dip_until"] = np.where(tells, np.maximum(keys["dip_until"], end + self.rules.rest), keys["dip_until"])
        keys["run_reported"] = np.where(tells, 1, keys["run_reported"])
