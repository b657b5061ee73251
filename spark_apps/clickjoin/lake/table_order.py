"""In which order a table's files are made and removed on an object store, so that a reader finds all of it or none.

There no folder is renamed in one step: never may a table be read that ends with an older version.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

_COMMIT = re.compile(r"_delta_log/(\d{20})\.json")
_CHECKPOINT = re.compile(r"_delta_log/(\d{20})\.checkpoint\b.*")
_LOG = "_delta_log/"


def in_order_of_making(names: Sequence[str]) -> list[list[str]]:
    """A table's files in groups to be written one after the other: it can be read once its log can be, and not before.

    Pure. What a reader begins with comes last: the newest checkpoint, or the first commit, and then the pointer.
    """
    return [group for group in reversed(in_order_of_removing(names)) if group]


def in_order_of_removing(names: Sequence[str]) -> list[list[str]]:
    """A table's files in groups to be removed one after the other: first what a reader of its log begins with.

    Pure. Without its pointer, first commit and checkpoints, from the oldest on, no reader makes an older table of it.
    """
    log = [name for name in names if name.startswith(_LOG)]
    commits = sorted(name for name in log if _COMMIT.fullmatch(name))
    checkpoints = sorted(name for name in log if _CHECKPOINT.fullmatch(name))
    pointer = [name for name in log if name == f"{_LOG}_last_checkpoint"]
    known = {*commits, *checkpoints, *pointer}
    rest = [name for name in log if name not in known]
    data = [name for name in names if not name.startswith(_LOG)]
    return [pointer, commits[:1], *([name] for name in checkpoints), commits[1:], rest, data]


def by_table(paths: Sequence[str], order: Callable[[Sequence[str]], list[list[str]]]) -> Iterator[list[str]]:
    """Groups of files in which each table's are made or removed, one group after the other."""
    tables: dict[str, list[str]] = {}
    for path in paths:
        folder, _, rest = path.partition("/")
        tables.setdefault(folder if rest else "", []).append(rest or path)
    for folder, names in sorted(tables.items()):
        yield from ([f"{folder}/{name}".lstrip("/") for name in group] for group in order(names) if group)
