"""The file system that a table's folder lies on. Runs on executors, which need no clickjoin.

One for a store in each process: connections and credentials are kept. Where S3 is, model/stores.py says; who asks, what
Amazon's own programs look at.
"""

from __future__ import annotations

import os
from typing import Any

import pyarrow.fs as pafs

from clickjoin.model.places import S3, is_on_s3
from clickjoin.model.stores import Store, store_of

_SECONDS = 30.0
_TRIES = 6


def filesystem(root: str) -> tuple[pafs.FileSystem, str]:
    """The file system of a folder (path or URI), and the folder's path on it. Errors: ValueError for another scheme."""
    if not is_on_s3(root):
        system, path = pafs.FileSystem.from_uri(root)
        return system, str(path)
    return _s3(os.getpid(), *store_of(root)), root.removeprefix(S3).rstrip("/")


def make_folder(system: pafs.FileSystem, path: str) -> None:
    """Make a folder and those above it; an object store has none to make."""
    if isinstance(system, pafs.LocalFileSystem):
        system.create_dir(path, recursive=True)


def _s3(*settings: Any) -> pafs.FileSystem:
    """The file system for a process and what it knows of S3; made once."""
    # Kept at Arrow's module: this one travels to executors by value, and what it kept would travel with it.
    made: dict[Any, pafs.FileSystem] = pafs.__dict__.setdefault("_clickjoin_made", {})
    if settings not in made:
        made[settings] = _made(Store(*settings[1:]))
    return made[settings]


def _made(store: Store) -> pafs.FileSystem:
    more: dict[str, Any] = {"region": store.region} if store.region else {}
    if store.endpoint:
        scheme, address = store.address
        more |= {"endpoint_override": address, "scheme": scheme, "force_virtual_addressing": not store.path_style}
    return pafs.S3FileSystem(
        connect_timeout=_SECONDS,
        request_timeout=_SECONDS,
        retry_strategy=pafs.AwsStandardS3RetryStrategy(max_attempts=_TRIES),
        allow_delayed_open=True,
        **more,
    )
