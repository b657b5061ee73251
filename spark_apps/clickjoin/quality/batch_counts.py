"""What the batches of a date have counted themselves: from table `metrics`, so that no record is read again."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING

import pyarrow.compute as pc

if TYPE_CHECKING:
    from clickjoin.lake.delta_reader import DeltaReader


def quarantined(delta: DeltaReader, batches: set[tuple[str, int]]) -> tuple[int, int] | None:
    """Quarantined records, and all records, of some join batches; None where no metrics of them are left."""
    bad = good = seen = 0
    for replica in sorted({replica for replica, _ in batches}):
        numbers = [number for name, number in batches if name == replica]
        where = [("replica", "=", replica), ("sequence", "=", "join"), ("batch", "in", numbers)]
        held = delta.read("metrics", where, ["quarantined", "primary_in", "events_in"])
        sums = {name: pc.sum(held[name]).as_py() or 0 for name in held.schema.names}
        bad, good, seen = bad + sums["quarantined"], good + sums["primary_in"] + sums["events_in"], seen + len(held)
    return (bad, bad + good) if seen else None


def misfits(delta: DeltaReader, tokens: Iterable[str]) -> tuple[dict[str, int], int] | None:
    """Published values that did not fit, by column, and published rows, of the batches of some tokens.

    None where no metrics of them are left, or where the lake is older than the count.
    """
    if "misfits" not in delta.columns("metrics"):
        return None
    found: Counter[str] = Counter()
    rows = 0
    for (replica, sequence), numbers in sorted(_by_sequence(tokens).items()):
        where = [("replica", "=", replica), ("sequence", "=", sequence), ("batch", "in", sorted(numbers))]
        for row in delta.read("metrics", where, ["joined", "misfits"]).to_pylist():
            rows += row["joined"] or 0
            found.update(json.loads(row["misfits"]) if row["misfits"] else {})
    return (dict(found), rows) if rows else None


def _by_sequence(tokens: Iterable[str]) -> dict[tuple[str, str], set[int]]:
    """Numbers of batches by replica and sequence; what is no token, somebody else has written."""
    found: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
    for token in tokens:
        parts = token.split("/")
        if len(parts) == 4 and parts[3].isdecimal():
            found[parts[1], parts[2]].add(int(parts[3]))
    return found
