"""Where the demo's lake lies: in its folder, or on an S3 server of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from stack.gateway import serving

_BUCKET = "lake"


class Store(NamedTuple):
    """The lake as the pipeline's file names it, and the folder that its files are seen in from outside.

    `ends_with_us`: nobody can look at it through the product once the demo is over.
    """

    lake: str
    folder: Path
    ends_with_us: bool = False


@contextmanager
def lake_store(kind: str, folder: Path) -> Iterator[Store]:
    """A place for a lake. Errors: Problem where an S3 server was asked for, and there can be none."""
    if kind == "local":
        yield Store(str(folder / "lake"), folder / "lake")
        return
    with serving(folder / "s3", _BUCKET) as server:
        os.environ.update(server.environment())
        yield Store(f"s3://{_BUCKET}", server.folder / "data" / _BUCKET, ends_with_us=True)
