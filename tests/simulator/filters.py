"""Filters beside files of claims: none is stored here, and each names a third of all ids that its file has not."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from clickjoin.kernel import id_filter
from tests.simulator import rust, workers


class Plain:
    """What threads would do, one after the other."""

    def __init__(self, _: int = 1) -> None:
        pass

    def __enter__(self) -> Plain:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def map(self, do: Callable[[Any], Any], items: Iterable[Any]) -> Iterable[Any]:
        """Each in turn."""
        return map(do, items)


class Weak:
    """A filter that is too often wrong, in the one way that a filter may be."""

    def __init__(self, ids: list[str]) -> None:
        self._held = id_filter.hashes_of(pa.array(ids, pa.string()))

    def may_hold(self, hashes: Any) -> Any:
        """Those that the file holds, and a third of all others."""
        return np.isin(hashes, self._held) | (hashes % np.uint64(3) == 0)


def _load(root: str, file: str) -> Weak | None:
    held = rust.lake().files.get(f"{root}/{file}")
    return Weak([row["event_id"] for row in held.rows]) if held else None


def install() -> None:
    """Put these in the place of those on disk."""
    id_filter.ThreadPoolExecutor = Plain  # type: ignore[misc,assignment]
    id_filter.read_file = lambda root, file, schema: workers.whole(root, [file], schema)
    id_filter.ids_near = lambda root, file, ids: workers.whole(root, [file], id_filter._IDS)["event_id"]
    id_filter.load = _load  # type: ignore[assignment]


def trust() -> None:
    """What a filter names is taken for claimed, and the file is not looked into."""

    def in_file(root: str, file: str, ids: pa.Array, hashes: Any) -> id_filter.Found:
        known = id_filter.load(root, file)
        maybe = np.ones(len(ids), np.bool_) if known is None else known.may_hold(id_filter.hashes_of(ids))
        return id_filter.Found(ids.filter(pa.array(maybe)), 0, 0)

    id_filter._in_file = in_file
