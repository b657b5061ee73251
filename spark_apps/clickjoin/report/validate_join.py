"""How many of some sampled foreign events find their primary event among those that were read beside them."""

from __future__ import annotations

from dataclasses import dataclass

from clickjoin.config import Lookback, Primary
from clickjoin.model.ids import MICROS, moment
from clickjoin.sources.sample import Key, Sample


@dataclass(frozen=True)
class Matches:
    """Of `foreign` sampled events `found` find their primary event among `primary` ones; `problem` if none ever can."""

    foreign: int
    found: int
    primary: int
    problem: str = ""


def match(primary: Sample, foreign: Sample, stream: Primary, *, whole: bool) -> Matches:
    """Look the sampled foreign events up among the primary ones. `whole`: these are all that there are."""
    times: dict[str, list[int]] = {}
    for key in primary.keys:
        times.setdefault(key.event_id, []).append(key.event_time)
    rule = getattr(stream, "primary_time", None)
    lookback = round(rule.lookback * MICROS) if isinstance(rule, Lookback) else None
    found = sum(_finds(key, times, lookback) for key in foreign.keys)
    problem = "" if found or not whole else _why_none(foreign.keys, primary.keys, times, lookback)
    return Matches(len(foreign.keys), found, len(primary.keys), problem)


def _finds(key: Key, times: dict[str, list[int]], lookback: int | None) -> bool:
    there = times.get(key.primary_id or "", [])
    if lookback is None:
        return key.primary_time in there
    return any(key.event_time - lookback <= at <= key.event_time for at in there)


def _why_none(
    foreign: tuple[Key, ...], primary: tuple[Key, ...], times: dict[str, list[int]], lookback: int | None
) -> str:
    count = f"none of {len(foreign):,} foreign events finds its primary event among all {len(primary):,} that there are"
    known = next((key for key in foreign if key.primary_id in times), None)
    if known is None:
        return (
            f"foreign.primary_id: {count}: they name such as {foreign[0].primary_id!r}, and primary ids are such as "
            f"{primary[0].event_id!r}"
        )
    at = moment(times[known.primary_id or ""][0]).isoformat()
    wanted = known.event_time if lookback is not None else known.primary_time
    when = "its own time is" if lookback is not None else "it says"
    return (
        f"foreign.primary_time: {count}, although ids agree: {known.primary_id!r} is of {at}, and {when} "
        f"{moment(wanted or 0).isoformat()} in {known.event_id!r}"
    )
