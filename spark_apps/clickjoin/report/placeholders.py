"""Ids that are none, but a word that a program wrote where it had no id, such as "undefined" or the nil UUID."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence

    from clickjoin.sources.sample import Key

_SHARE, _COUNT = 0.05, 10  # of records with one id: more is no id, but a word
_TIMES_MEAN, _MOST = 3, 0.5  # of few ids each has a large share: then more than so many times the mean, at most half
_SHOWN = 3


def placeholders(keys: Mapping[str, Sequence[Key]], sections: Mapping[str, str], *, by_lookback: bool) -> list[str]:
    """What to say of such ids, a sentence for each column that holds some. `keys`, `sections`: by stream."""
    foreign, primary = keys.get("foreign", ()), keys.get("primary", ())
    limit = max(_SHARE, min(_MOST, _TIMES_MEAN / max(len({key.event_id for key in primary}), 1)))
    shared = _shared(primary) if by_lookback else ()  # who names a time too means one of several
    named = Counter(key.primary_id for key in foreign if key.primary_id and key.primary_id in shared)
    of_foreign, of_primary = (Counter(key.event_id for key in some) for some in (foreign, primary))
    found = (
        ("foreign", "event_id", "have", of_foreign, _SHARE, "one of each counts"),
        ("primary", "event_id", "have", of_primary, limit, "nothing tells which of them a foreign event means"),
        ("foreign", "primary_id", "name", named, limit, "each is joined to whichever primary event has it last"),
    )
    return [
        f"{sections[stream]}.{column}: {said}, and {why}: no id should be so frequent; see what writes it"
        for stream, column, verb, counts, share, why in found
        if (said := _said(counts, share, len(keys.get(stream, ())), verb))
    ]


def _said(counts: Mapping[str, int], share: float, whole: int, verb: str) -> str:
    """The most frequent of the ids that too many records have; empty where there is none."""
    above = [(name, count) for name, count in counts.items() if count >= _COUNT and count > share * whole]
    above.sort(key=lambda item: -item[1])
    if not above:
        return ""
    name, count = above[0]
    others = "".join(f", {count} {name!r}" for name, count in above[1:_SHOWN])
    more = f", and so on for {len(above) - _SHOWN} more" if len(above) > _SHOWN else ""
    return f"{count} of {whole} sampled records {verb} the id {name!r}{others}{more}"


def _shared(primary: Iterable[Key]) -> Container[str]:
    """Ids of primary events at several times, where most ids are of one: else ids are of users, who have several."""
    times = Counter(name for name, _ in {key[:2] for key in primary})
    shared = {name for name, count in times.items() if count > 1}
    return shared if 2 * len(shared) < len(times) else ()
