"""About how long objects are unpacked, and how long their records: from the beginning of one of each kind."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from clickjoin.kernel.packed import SUFFIX, BrokenFile, is_packed, may_be_packed, unpack
from clickjoin.kernel.parse.csv_lines import CsvForm
from clickjoin.kernel.remote_file import Handle, Held, length_of, pread
from clickjoin.sources.files.line_end import records_in

SAMPLE = 1 << 16
PARQUET = ".parquet"


class Kind(NamedTuple):
    """Bytes unpacked for one that is stored, and mean bytes of a record."""

    times: float = 1.0
    mean: float = 200.0


_UNSEEN = {PARQUET: Kind(8.0)}  # its rows as JSON lines; a look at them is a read of its end and of all columns


class Kinds:
    """What is known of each kind of object; a kind is learnt once."""

    def __init__(self) -> None:
        self._known = dict(_UNSEEN)

    def of(self, path: str, form: CsvForm | None, opened: Callable[[], Handle]) -> Kind:
        """The kind of an object; `opened` is asked for what it holds where it is the first of its kind."""
        suffix = next((suffix for suffix in SUFFIX.values() if path.endswith(suffix)), "")
        if suffix not in self._known:
            self._known[suffix] = _learn(opened(), path, form)
        return self._known[suffix]


def _learn(file: Handle, path: str, form: CsvForm | None) -> Kind:
    data = pread(file, SAMPLE, 0)
    held = Held(data)
    plain = _unpacked(held) if is_packed(held, path) else data
    records = records_in(plain, form.separator) if form and form.multiline else plain.count(b"\n")
    mean = len(plain) / max(records, 1)
    times = 1.0 if plain is data else max(len(plain) / len(data), 1.0)
    return Kind(times, max(mean, 1.0) if records or length_of(file) <= SAMPLE else 200.0)


def _unpacked(held: Held) -> bytes:
    """All that the first bytes of a packed object unpack to."""
    blocks: list[bytes] = []
    with suppress(BrokenFile):  # where the sample ends
        blocks.extend(unpack(held, SAMPLE))
    return b"".join(blocks)


def is_whole(path: str, form: CsvForm | None) -> bool:
    """Whether an object is read by one task from its beginning, and so never planned in part."""
    return may_be_packed(path) or bool(form and form.multiline)
