"""Lines that are not plain, and the id that each parser finds in them: where engines do not do what the kernel does."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

Ids = Callable[[Path], Sequence[str | None]]
LINES = {
    "cut off": b'{"event_id":"a","query_i',
    "a byte that is not UTF-8": b'{"event_id":"a\xff"}',
    "its key twice": b'{"event_id":"a","event_id":"b"}',
    "another key twice": b'{"event_id":"a","x":1,"x":2}',
    "an integer of 23 digits": b'{"event_id":12345678901234567890123}',
    "a fraction": b'{"event_id":1.50}',
    "true": b'{"event_id":true}',
    "an object": b'{"event_id":{"a":1}}',
    "a letter escaped": b'{"event_id":"\\u0061"}',
    "half of a surrogate pair": b'{"event_id":"\\ud800"}',
    "two objects in a line": b'{"event_id":"a"} {"event_id":"b"}',
    "a bare NaN beside it": b'{"event_id":"a","x":NaN}',
    "no object": b"[1]",
}
_GOOD = b'{"event_id":"before"}', b'{"event_id":"after"}'


def table(parsers: Mapping[str, Ids]) -> str:
    """As Markdown: a row for each line, what each parser makes of it."""
    head = f"| the id is, or the line is | {' | '.join(parsers)} |\n| --- |{' --- |' * len(parsers)}"
    rows = [f"| {name} | {' | '.join(_said(ids, line) for ids in parsers.values())} |" for name, line in LINES.items()]
    return "\n".join([head, *rows])


def _said(ids: Ids, line: bytes) -> str:
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
        file.write(b"\n".join([_GOOD[0], line, _GOOD[1], b""]))
        file.flush()
        try:
            found = list(ids(Path(file.name)))
        except Exception:
            return "all stops"
    if len(found) != 3 or found[0] != "before" or found[2] != "after":
        return "no row" if found == ["before", "after"] else "other lines change"
    return "refused" if found[1] is None else f"`{json.dumps(found[1])[1:-1]}`"
