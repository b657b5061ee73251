"""Interleavings of two writers of one table, by name: who does what, and what becomes of it. See matrix.py."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Op:
    """One writer's work. `rows`: ids, each a letter with hour, shard and minute, such as `a000 b130`."""

    kind: str
    rows: str = ""
    txn: tuple[str, int] = ("none", 0)
    hour: int = 0


@dataclass(frozen=True)
class Case:
    """One interleaving. `refused`: why `first` was refused, try by try; `ids`: what the table holds at the end."""

    name: str
    first: Op
    second: Op | None
    refused: tuple[str, ...]
    answer: Any
    ids: str
    before: Sequence[Op] = ()
    txns: tuple[tuple[str, int], ...] = ()


def insert(rows: str, app: str = "A", version: int = 1) -> Op:
    """The product's insert-only MERGE under a txn, with the literals of its rows."""
    return Op("insert", rows, (app, version))


def append(rows: str, app: str = "A", version: int = 1) -> Op:
    """Spark's append under a txn."""
    return Op("append", rows, (app, version))


def light(rows: str, app: str = "A", version: int = 1) -> Op:
    """delta-rs's append under a txn."""
    return Op("light", rows, (app, version))


def written(rows: str, app: str = "A", version: int = 1) -> Op:
    """The product's claim of what workers have written, checked against what it saw when it began."""
    return Op("written", rows, (app, version))


def fix(app: str = "A", version: int = 1) -> Op:
    """delta-rs's commit of a txn without rows."""
    return Op("fix", "", (app, version))


def remove(rows: str) -> Op:
    """The product's removal of what events name: files are written again without them."""
    return Op("remove", rows)


def drop(hour: int) -> Op:
    """delta-rs's delete of whole partitions before an hour."""
    return Op("drop", hour=hour)


def pack(hour: int) -> Op:
    """The product's rewrite of one hour's files, by Spark."""
    return Op("pack", hour=hour)


def repack(hour: int) -> Op:
    """delta-rs's rewrite of one hour's files, which the product leaves alone for what is seen here."""
    return Op("repack", hour=hour)


_OLD = (light("x000", "old", 1), light("y000", "old", 2))  # two files in hour 0, shard 0
CASES = (
    Case(
        "merge, merge: same bucket and shard, same id", insert("a000 b001"), insert("b001", "B"), ("append",), 1, "ab"
    ),
    Case("merge, merge: other bucket", insert("a000"), insert("b100", "B"), (), 1, "ab"),
    Case("merge, merge: other shard", insert("a000"), insert("b010", "B"), (), 1, "ab"),
    Case(
        "merge, merge: other times of one bucket and shard", insert("a000"), insert("b009", "B"), ("append",), 1, "ab"
    ),
    Case("merge, Spark append", insert("a000"), append("a000", "B"), ("append",), 0, "a"),
    Case("merge, Spark append elsewhere", insert("a000"), append("a100", "B"), (), 1, "aa"),
    Case("merge, delta-rs append", insert("a000"), light("a000", "B"), ("append",), 0, "a"),
    Case("merge, delta-rs append elsewhere", insert("a000"), light("a100", "B"), (), 1, "aa"),
    Case("merge, its partition dropped", insert("a000"), drop(1), ("delete-read",), 1, "a", _OLD),
    Case("merge, another partition dropped", insert("a100"), drop(1), (), 1, "a", _OLD),
    Case("merge, files of other times dropped", insert("a009"), drop(1), (), 1, "a", _OLD),
    Case("merge, its partition packed", insert("a000"), pack(0), ("append",), 1, "axy", _OLD),
    Case("merge, another partition packed", insert("a100"), pack(0), (), 1, "axy", _OLD),
    Case("merge, same txn with other rows", insert("a000"), insert("b100"), ("transaction",), None, "b"),
    Case("merge, same txn fixed", insert("a000"), fix(), ("transaction",), None, ""),
    Case("merge, another's txn fixed", insert("a000"), fix("B"), (), 1, "a"),
    Case("merge, columns added", insert("a000"), Op("columns"), ("metadata",), 1, "a"),
    Case("merge replayed", insert("a000"), None, (), None, "b", (insert("b000"),)),
    Case("merge older than its txn", insert("a000"), None, (), None, "", (fix(version=2),)),
    Case("merge that inserts nothing", insert("a000"), None, (), 0, "a", (insert("a000", "B"),), (("A", 1),)),
    Case("removal, merge in its partition", remove("x000"), insert("a000"), ("refused",), 1, "ay", _OLD),
    Case("removal, what goes comes again", remove("x000"), light("x000", "old", 3), ("refused",), 2, "y", _OLD),
    Case("merge, a removal in its partition", insert("a000"), remove("x000"), ("delete-read",), 1, "ay", _OLD),
    Case("removal, merge elsewhere", remove("x000"), insert("a100"), ("refused",), 1, "ay", _OLD),
    Case("removal, the same removal", remove("x000"), remove("x000"), ("refused",), 0, "y", _OLD),
    Case("removal, its partition packed", remove("x000"), pack(0), ("refused",), 1, "y", _OLD),
    Case("removal, its partition dropped", remove("x000"), drop(1), ("refused",), 0, "", _OLD),
    Case("append, append of the same txn", append("a000"), append("b000"), ("transaction",), None, "b"),
    Case("append, append of another", append("a000"), append("b000", "B"), (), None, "ab"),
    Case("append, merge", append("a000"), insert("a000", "B"), (), None, "aa"),
    Case("append, same txn fixed", append("a000"), fix(), ("transaction",), None, ""),
    Case("append, its partition dropped", append("a000"), drop(1), (), None, "a", _OLD),
    Case("append replayed", append("a000"), None, (), None, "b", (append("b000"),)),
    Case("append of nothing", append(""), None, (), None, "", (), (("A", 1),)),
    Case("delta-rs append, the same txn", light("a000"), light("b000"), ("refused",), False, "b"),
    Case("delta-rs append, another's", light("a000"), light("b000", "B"), ("refused",), True, "ab"),
    Case("delta-rs append, Spark merge of another", light("a000"), insert("b000", "B"), ("refused",), True, "ab"),
    Case("fix, merge of the same txn", fix(), insert("a000"), ("refused",), False, "a"),
    Case("fix, append of the same txn", fix(), append("a000"), ("refused",), False, "a"),
    Case("fix, merge of another", fix(), insert("a000", "B"), ("refused",), True, "a"),
    Case("fix, columns added", fix(), Op("columns"), ("refused",), True, ""),
    Case("drop, merge into what goes", drop(1), insert("a000"), ("refused",), 3, "", _OLD),
    Case("drop, merge elsewhere", drop(1), insert("a100"), (), 2, "a", _OLD),
    Case("drop, append into what goes", drop(1), append("a000"), ("refused",), 3, "", _OLD),
    Case("drop, the same drop", drop(1), drop(1), ("refused",), 0, "", _OLD),
    Case("drop, a removal in what goes", drop(1), remove("x000"), ("refused",), 1, "", _OLD),
    Case("drop, what goes is packed", drop(1), pack(0), ("refused",), 2, "", _OLD),
    Case("delta-rs pack, merge into it", repack(0), insert("a000"), (), 2, "axy", _OLD),
    Case("delta-rs pack, append into it", repack(0), append("a000"), (), 2, "axy", _OLD),
    Case("delta-rs pack, a removal in it", repack(0), remove("x000"), ("refused",), None, "y", _OLD),
    Case("delta-rs pack, its partition dropped", repack(0), drop(1), ("refused",), None, "", _OLD),
    Case("delta-rs pack, packed by Spark", repack(0), pack(0), (), 2, "xxyy", _OLD),
    Case("delta-rs pack, the same: rows are doubled", repack(0), repack(0), (), 2, "xxyy", _OLD),
    Case("merge, written elsewhere", insert("a000"), written("b110", "B"), (), 1, "ab"),
    Case("merge, same txn written", insert("a000"), written("b000"), ("transaction",), None, "b"),
    Case("removal, written in its partition", remove("x000"), written("a000"), ("refused",), 1, "ay", _OLD),
    Case("written, nothing between", written("a000 b110"), None, (), 2, "abxy", _OLD, (("A", 1),)),
    Case("written, one claimed by the same way", written("a000 b110"), written("a000", "B"), ("refused",), 1, "ab"),
    Case("written, written beside it", written("a000"), written("b000", "B"), ("refused",), 1, "ab"),
    Case("written, written elsewhere", written("a000"), written("a110", "B"), ("refused",), 1, "aa"),
    Case("written, merge of the same", written("a000"), insert("a000", "B"), ("refused",), 0, "a"),
    Case("written, all claimed by the same way", written("a000"), written("a000 b000", "B"), ("refused",), 0, "ab"),
    Case("written, same txn merged", written("a000"), insert("b000"), ("refused",), None, "b"),
    Case("written, same txn written", written("a000"), written("b000"), ("refused",), None, "b"),
    Case("written, same txn fixed", written("a000"), fix(), ("refused",), None, ""),
    Case("written, its partition packed", written("a000"), pack(0), ("refused",), 1, "axy", _OLD),
    Case("written, its partition dropped", written("a000"), drop(1), ("refused",), 1, "a", _OLD),
    Case("written, columns added", written("a000"), Op("columns"), ("refused",), 1, "a"),
    Case("merge, written of the same", insert("a000 b000"), written("a000", "B"), ("append",), 1, "ab"),
    Case("drop, written into what goes", drop(1), written("a000"), ("refused",), 3, "", _OLD),
    Case("next version, nothing between", Op("next", txn=("A", 1)), None, (), True, "", (), (("A", 1),)),
    Case("next version, append between", Op("next", txn=("A", 1)), append("a000", "B"), ("refused",), False, "a"),
    Case("next version, fix between", Op("next", txn=("A", 1)), fix("B"), ("refused",), False, ""),
)
