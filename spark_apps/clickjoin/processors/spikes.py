"""Spikes and dips of each key against its own history (MillWheel's Zeitgeist, VLDB 2013, section 1).

A window is looked at once the watermark has passed its beginning, so that all before it are final: what is said of a
key is the same wherever batches end. A spike is reported as soon as its window holds too many, a dip when the watermark
says that nothing is merely late. Of a period that stands out one signal is reported, not one of each window.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa

from clickjoin.model.errors import ConfigError
from clickjoin.model.ids import MICROS
from clickjoin.processors.corrections import KEPT, Corrections
from clickjoin.processors.durations import microseconds
from clickjoin.processors.limits import FAR, Limits, as_signals
from clickjoin.processors.packing import Ragged, counted, merged, pack_ragged, packed, unpack_ragged, unpacked
from clickjoin.processors.port import NEVER, Band, Done, Outlook, Processor, Work
from clickjoin.processors.seasonal import STATE, Keys, Seasonal, begun
from clickjoin.processors.tumbling import opened
from clickjoin.processors.walk import Rules, Walk

if TYPE_CHECKING:
    import numpy.typing as npt

_HOUR, _DAY, _WEEK = 3600 * MICROS, 86400 * MICROS, 7 * 86400 * MICROS


class SpikesAndDips(Processor):
    """Signals `spike` and `dip`.

    `window`: whose counts are compared, from 1s to 1h, a divisor of an hour. `season`: 1d, or 7d for days of the week
    that differ. `threshold`: standard deviations. `min_count`: no spike of fewer. `ttl`: a key without an event for
    so long is forgotten. `warm`: no spike is reported so soon after the first event of all, no dip so soon after a
    key's first. `rest`: windows without anything that stands out, after which a period has ended. `memory`: days.
    """

    state: ClassVar[pa.Schema] = pa.schema([
        ("model", pa.binary()), ("open", pa.binary()), ("recent", pa.binary()), ("reported", pa.binary()),
    ])  # fmt: skip
    fixed: ClassVar[tuple[str, ...] | None] = ("window", "season")
    corrects: ClassVar[bool] = True

    def __init__(
        self,
        window: str = "1m",
        season: str = "7d",
        threshold: float = 6,
        min_count: int = 20,
        ttl: str = "60d",
        warm: str = "1d",
        rest: int = 5,
        memory: int = 14,
    ) -> None:
        self.window = width = microseconds(window, "window")
        if not (MICROS <= width <= _HOUR) or _HOUR % width or width % MICROS:
            raise ConfigError(
                f"process.args.window: {window} does not divide an hour", remedy="Write 1s, 10s, 1m or 1h"
            )
        if (length := microseconds(season, "season")) not in (_DAY, _WEEK):
            raise ConfigError(f"process.args.season: {season} is no day or week", remedy="Write 1d or 7d")
        if not 2 <= float(threshold) <= 100 or int(min_count) < 1 or int(rest) < 0 or int(memory) < 1:
            raise ConfigError(
                "process.args: threshold is from 2 to 100, min_count and memory at least 1, rest at least 0"
            )
        self.rules = Rules(
            window=width, limits=Limits(float(threshold), int(min_count)), rest=int(rest),
            ttl=max(microseconds(ttl, "ttl") // width, 1), warm=microseconds(warm, "warm") // width,
        )  # fmt: skip
        self.model = Seasonal(_HOUR // width, weekly=length == _WEEK, memory=int(memory))

    def process(self, work: Work) -> Done:
        """See Processor."""
        windows, count = work.times // self.window, len(work.keys)
        late = windows < self._final(work)[work.at]
        items = merged(unpack_ragged(work.state["open"]), counted(work.at[~late], windows[~late]))
        keys = self._held(work, items)
        horizon = work.watermark // self.window
        walk = Walk(self._rules(work.lateness), self.model, keys, items, horizon, work.began // self.window)
        corrections = Corrections(walk, work.state) if work.lateness else None
        if corrections:
            corrections.take(counted(work.at[late], windows[late]))
        walk.run()
        left = items.window >= horizon
        left[left] &= ~walk.gone[items.at[left]]
        kept = Ragged(*(part[left] for part in items))
        state = {"model": packed(keys), "open": pack_ragged(kept, count)}
        since = (work.watermark - work.lateness) // self.window
        reported = corrections.reported() if corrections else walk.reported()
        none = dict.fromkeys(KEPT, pa.nulls(count, pa.binary()))
        state |= corrections.kept(since, reported) if corrections else none
        timers = np.where(walk.gone, NEVER, self._timers(keys, kept, walk))
        return Done(pa.table(state), timers, walk.gone, as_signals(reported, self.window))

    def _rules(self, lateness: int) -> Rules:
        """A key is not forgotten while late events may correct it: what was reported of it would be reported again."""
        least = lateness // self.window + self.rules.rest + 2 if lateness else 0
        return replace(self.rules, ttl=max(self.rules.ttl, least))

    def _final(self, work: Work) -> npt.NDArray[np.int64]:
        """Of each key the first window that is not final; before all where none is."""
        found = np.full(len(work.keys), -FAR, np.int64)
        if work.known.any():
            stored = unpacked(work.state["model"], STATE)
            found[work.known] = np.where(stored["cursor"] > stored["since"], stored["cursor"], -FAR)
        return found

    def outlook(self, state: pa.Table, watermark: int, began: int) -> Outlook:
        """See Processor. The key is taken to the watermark as it will be when it is looked at the next time."""
        keys = unpacked(state["model"], STATE)
        items = unpack_ragged(state["open"])
        horizon = max(watermark // self.window, int(keys["cursor"][0]))
        walk = Walk(self.rules, self.model, keys, items, horizon, began // self.window)
        walk.run()
        notes = {
            "first_event": keys["since"], "last_event": np.maximum(keys["last"], items.window.max(initial=0)),
            "final_before": keys["cursor"],
            "spikes_from": np.maximum(keys["spike_until"], walk.began + self.rules.warm),
            "dips_from": np.maximum(keys["dip_until"], keys["since"] + self.rules.warm),
        }  # fmt: skip
        return Outlook(
            opened(Ragged(*(part[items.window >= horizon] for part in items)), self.window),
            None if walk.gone[0] else self._band(keys, walk),
            {name: int(windows[0]) * self.window for name, windows in notes.items()},
        )

    def _band(self, keys: Keys, walk: Walk) -> Band:
        """That of the hour which is not over: it is the same for all its windows."""
        hours = keys["cursor"] // self.model.per_hour
        begin, end = int(hours[0]) * self.model.per_hour, int(hours[0] + 1) * self.model.per_hour
        expected, low, high = (float(values[0]) for values in walk.expectation(hours))
        return Band(max(begin, int(keys["since"][0])) * self.window, end * self.window, expected, low, high)

    def _held(self, work: Work, items: Ragged) -> Keys:
        """State of all keys; of those that are new as of their first windows."""
        first = np.full(len(work.keys), work.watermark // self.window, np.int64)
        here, at = np.unique(items.at, return_index=True)
        first[here] = items.window[at]
        keys = begun(first)
        if work.known.any():
            stored = unpacked(work.state["model"], STATE)
            # Of a key none of whose windows was final yet an earlier one may have come.
            same = (stored["cursor"] > stored["since"]) | (first[work.known] >= stored["since"])
            keys[np.flatnonzero(work.known)[same]] = stored[same]
        return keys

    def _timers(self, keys: Keys, kept: Ragged, walk: Walk) -> npt.NDArray[np.int64]:
        """When a key has to be looked at without an event: an open window, a dip of it to come, its end."""
        due = keys["last"] + walk.rules.ttl
        np.minimum.at(due, kept.at, kept.window + 1)
        hours = keys["cursor"] // self.model.per_hour
        expected = walk.per_window(keys, hours)
        missing = walk.limits.needed(keys["run_count"], keys["noise"]) - keys["run_expected"]
        soon = keys["cursor"] + np.maximum(-(-missing // np.maximum(expected, 1)), 1)
        hour_end = (hours + 1) * self.model.per_hour
        may_dip = (keys["run_reported"] == 0) & (self.model.most_a_day(keys) >= self.rules.limits.threshold**2)
        young = self.model.seen(keys, hours) < 1  # its day's hours are not known yet
        looks = np.where((expected > 0) & (keys["run_reported"] == 0), np.minimum(soon, hour_end), hour_end)
        due = np.where(may_dip | (young & (expected > 0)), np.minimum(due, looks), due)
        return due * self.window  # type: ignore[no-any-return]
