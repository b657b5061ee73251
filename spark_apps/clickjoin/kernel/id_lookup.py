"""Which of some ids are in some files of claims, whatever their times: by the files' filters, then by the files.

Runs on executors, which need no clickjoin.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.kernel import id_filter
from clickjoin.kernel.arrays import int64_array
from clickjoin.kernel.parquet_rows import ids_near, read_file

_IDS = pa.schema([("event_id", pa.string())])


class Found(NamedTuple):
    """Ids that are there; how many files were read for it; ids that a filter named, and that were not in its file."""

    ids: pa.Array
    files_read: int
    false_positives: int


def ids_among(root: str, files: Sequence[str], ids: pa.Array, readers: int = 2) -> Found:
    """Which of some distinct ids are in some files below a folder. Errors: FileNotFoundError where one has gone."""
    hashes = id_filter.hashes_of(ids)
    order = np.argsort(hashes)  # a filter's pages are then touched in their order
    ids, hashes = ids.take(int64_array(order)), hashes[order]
    with ThreadPoolExecutor(readers) as pool:
        parts = list(pool.map(lambda file: _in_file(root, file, ids, hashes), files))
    held = [part.ids for part in parts if len(part.ids)]
    found = pc.unique(pa.chunked_array(held, pa.string()))
    return Found(found, sum(part.files_read for part in parts), sum(part.false_positives for part in parts))


def _in_file(root: str, file: str, ids: pa.Array, hashes: np.ndarray[Any, Any]) -> Found:
    known = id_filter.load(root, file)
    if known is None:
        return _in_new_file(root, file, ids)
    maybe = ids.take(int64_array(np.flatnonzero(known.may_hold(hashes))))
    if not len(maybe):
        return Found(maybe, 0, 0)
    # The file alone says what is claimed, never its filter.
    held = ids_near(root, file, maybe)
    found = pc.unique(held.filter(pc.is_in(held, value_set=maybe)))
    return Found(found, 1, len(maybe) - len(found))


def _in_new_file(root: str, file: str, ids: pa.Array) -> Found:
    held = read_file(root, file, _IDS)["event_id"]
    if len(held) >= id_filter.FEWEST:
        with suppress(OSError):  # a lake that is only read, a disk that is full: the file itself is there
            id_filter.store(root, file, id_filter.hashes_of(held))
    return Found(pc.unique(held.filter(pc.is_in(held, value_set=ids))), 1, 0)
