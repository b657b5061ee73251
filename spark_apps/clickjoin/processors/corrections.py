"""Late events of keys whose spikes and dips were looked at already: what they change in what was reported.

They are counted in their windows. A dip that they end is retracted, one that they leave is reported with its new count,
and a window that they make a spike is reported. What was learned of the hours before the running one stays as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from clickjoin.processors.limits import DIP, ONE, REPORTED, SPIKE, Rows
from clickjoin.processors.packing import Ragged, merged, pack_items, pack_ragged, unpack_items, unpack_ragged

if TYPE_CHECKING:
    import numpy.typing as npt

    from clickjoin.processors.walk import Walk

    Ints = npt.NDArray[np.int64]

KEPT = ("recent", "reported")  # columns of state: counts of final windows, and signals that late events may change
_SPAN = 1 << 40  # more than there are windows


class Corrections:
    """Corrections of the keys of a walk, which has not begun yet. `state`: columns KEPT."""

    def __init__(self, walk: Walk, state: pa.Table) -> None:
        self._walk, self._limits = walk, walk.limits
        self._recent = unpack_ragged(state["recent"])
        at, rows = unpack_items(state["reported"], REPORTED)
        rows["of"] = at  # positions are those of this batch
        self._known: Rows = rows
        self._made: list[Rows] = []

    def take(self, late: Ragged) -> None:
        """Take in late events, before the walk goes on."""
        if not len(late.at):
            return
        self._recent = merged(self._recent, late)
        self._correct_runs(late)
        self._correct_dips(late)
        self._find_spikes(late)

    def reported(self) -> Rows:
        """What the walk has reported, and the corrections."""
        found = self._walk.reported()
        # A dip that was retracted can come again while its run goes on.
        for row in np.flatnonzero(found["kind"] == DIP):
            before = self._known[
                (self._known["of"] == found["of"][row]) & (self._known["start"] == found["start"][row])
            ]
            if len(before := before[before["kind"] == DIP]):
                found["revision"][row] = before["revision"].max() + 1
        return np.concatenate([found, *self._made])

    def kept(self, since: int, reported: Rows) -> dict[str, Any]:
        """Columns of state: windows from `since` on, and signals that reach into them or whose run goes on.

        `reported`: of this batch.
        """
        walk = self._walk
        final = walk.items.window < walk.horizon
        recent = merged(self._recent, Ragged(*(part[final] for part in walk.items)))
        recent = Ragged(*(part[(recent.window >= since) & ~walk.gone[recent.at]] for part in recent))
        rows = np.concatenate([self._known, reported])
        rows = rows[np.lexsort((rows["retracted"], rows["revision"], rows["start"], rows["kind"], rows["of"]))]
        # Of each the newest: one that was retracted tells which revision is the next.
        newest = np.append((_named(rows[1:]) != _named(rows[:-1])), True)[: len(rows)]
        runs = (rows["kind"] == DIP) & (rows["start"] == walk.keys["run_from"][rows["of"]])
        rows = rows[newest & ((rows["end"] + walk.rules.rest > since) | runs) & ~walk.gone[rows["of"]]]
        count = len(walk.keys)
        return {"recent": pack_ragged(recent, count), "reported": pack_items(rows["of"], rows, count)}

    def _correct_runs(self, late: Ragged) -> None:
        """Windows that fall short and were not reported yet, and the hour that is not over."""
        keys, hour = self._walk.keys, self._walk.model.per_hour
        some = keys[late.at]
        running = ((some["run_expected"] > 0) | (some["run_count"] > 0)) & (late.window >= some["run_from"])
        np.add.at(keys["run_count"], late.at, np.where(running, late.count, 0))
        now = late.window // hour == some["cursor"] // hour
        np.add.at(keys["learned"], late.at, np.where(now, late.count, 0))

    def _correct_dips(self, late: Ragged) -> None:
        standing = (self._known["kind"] == DIP) & ~self._known["retracted"]
        codes, sums = late.at * _SPAN + late.window, np.append(0, np.cumsum(late.count))
        low, high = (np.searchsorted(codes, self._known["of"] * _SPAN + self._known[name]) for name in ("start", "end"))
        more = np.where(standing, sums[high] - sums[low], 0)
        was = self._known[more > 0]
        if not len(was):
            return
        taken_back = was.copy()
        taken_back["retracted"] = True
        count = was["count"] + more[more > 0]
        stays = np.rint(was["expected"] * ONE) >= self._limits.needed(count, was["noise"])
        again = self._limits.dips(was["of"], was["start"], was["end"], count, was["expected"], was["noise"])
        again["revision"] = was["revision"] + 1
        self._made += [taken_back, again[stays]]
        over = was[~stays]
        keys = self._walk.keys
        runs = keys["run_from"][over["of"]] == over["start"]
        keys["run_reported"][over["of"][runs]] = 0  # it may come again
        keys["dip_until"][over["of"][runs]] = np.minimum(
            keys["dip_until"][over["of"][runs]], keys["cursor"][over["of"][runs]]
        )

    def _find_spikes(self, late: Ragged) -> None:
        """Windows that hold too many by now, of periods of which no spike was reported."""
        walk = self._walk
        codes = self._recent.at * _SPAN + self._recent.window
        count = self._recent.count[np.searchsorted(codes, late.at * _SPAN + late.window)]
        keys = walk.keys[late.at]
        usual = walk.per_window(keys, late.window // walk.model.per_hour) / ONE
        crossing = self._limits.crossing(usual, keys["noise"])
        many = (count >= crossing) & (late.window >= walk.began + walk.rules.warm)
        spikes = self._known[self._known["kind"] == SPIKE]
        known = list(zip(spikes["of"].tolist(), spikes["start"].tolist(), strict=True))
        for nth in np.flatnonzero(many).tolist():
            of, window = int(late.at[nth]), int(late.window[nth])
            if any(key == of and abs(start - window) <= walk.rules.rest for key, start in known):
                continue
            known.append((of, window))
            one = slice(nth, nth + 1)
            self._made.append(
                self._limits.spikes(late.at[one], late.window[one], crossing[one], usual[one], keys["noise"][one])
            )
            walk.keys["spike_until"][of] = max(walk.keys["spike_until"][of], window + 1 + walk.rules.rest)


def _named(rows: Rows) -> Any:
    """Key, kind and start of each, as one number."""
    return (rows["of"] * 2 + (rows["kind"] == DIP)) * _SPAN + rows["start"]
