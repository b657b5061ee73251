"""Checks that the shape of the data is what it was: fields of the records, columns of the output."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from clickjoin.quality.checks import ZERO, Check
from clickjoin.quality.fields import Drift, Fields, drift

if TYPE_CHECKING:
    from clickjoin.quality.history import History
    from clickjoin.quality.profile import Figures

_MAX_SAMPLES = 4  # samples beside the schema
_FIRST = "no earlier date has any: this one is what the next is checked against"


def of_fields(stream: str, figures: Figures, history: History) -> Iterator[Check]:
    """Fields of a stream's records against those of the newest earlier date."""
    look = (
        f"ask who writes {stream}'s logs, and see what reads these fields: the adapter, expectations, whoever reads on"
    )
    yield from _pair(stream, ("fields_kept", "fields_new"), "fields", figures.fields[stream], look, history)


def of_columns(figures: Figures, history: History) -> Iterator[Check]:
    """Columns of table `joined` against those at the newest earlier date."""
    columns = Fields(1, {name: {kind: 1} for name, kind in figures.columns.items()})
    look = "was the adapter changed, or `joined` rewritten? Whoever reads it has to know"
    yield from _pair("joined", ("columns_kept", "columns_new"), "columns", columns, look, history)


def known_fields(stream: str, history: History) -> dict[str, str]:
    """Fields and their types of the newest earlier date that has any."""
    return _before(stream, ("fields_kept", "fields_new"), history)[1]


def _before(suite: str, names: tuple[str, str], history: History) -> tuple[str, dict[str, str]]:
    held = [found for name in names if (found := history.last_samples(suite, name))]
    if not held:
        return "", {}
    when, text = max(held)
    first: Any = json.loads(text)[0]
    return when.isoformat(), dict(first) if isinstance(first, Mapping) else {}


def _pair(suite: str, names: tuple[str, str], what: str, now: Fields, look: str, history: History) -> Iterator[Check]:
    when, before = _before(suite, names, history)
    schema = now.schema()
    found = drift(before, now) if before and schema else Drift()
    why = "" if before and schema else _FIRST if schema else "there are no records of the date"
    kept, new = (((schema, *found_[:_MAX_SAMPLES]) if schema else ()) for found_ in (found.lost, found.new))
    since = f" since {when}" if when else ""
    asks = f"{what} that vanished or changed their type{since}"
    yield Check(
        suite, names[0], asks, len(found.lost), fail=ZERO, look=_said(found.lost, look), undecided=why, samples=kept
    )
    asks = f"{what} that appeared{since}"
    yield Check(
        suite, names[1], asks, len(found.new), warn=ZERO, look=_said(found.new, look), undecided=why, samples=new
    )


def _said(found: tuple[str, ...], look: str) -> str:
    more = f" and {len(found) - _MAX_SAMPLES} more" if len(found) > _MAX_SAMPLES else ""
    return f"{'; '.join(found[:_MAX_SAMPLES])}{more}: {look}" if found else look
