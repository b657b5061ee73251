"""Where a benchmark's lake lies: in a folder, or on an S3 server of its own, behind a proxy that counts and delays."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

from demo.store import lake_store
from tests.s3.proxy import Proxy

_ENDPOINT = "AWS_ENDPOINT_URL"


class Place(NamedTuple):
    """The lake as a pipeline's file names it, the folder its files are seen in, and requests sent, by their kind."""

    lake: str
    folder: Path
    requests: Callable[[], Counter[str]]


@contextmanager
def lake_at(kind: str, folder: Path, delay: float) -> Iterator[Place]:
    """A place for a lake; `delay`: seconds that each request takes longer. Errors: Problem where there is no S3."""
    with lake_store(kind, folder) as store:
        if kind == "local":
            yield Place(store.lake, store.folder, Counter)
            return
        server = int(os.environ[_ENDPOINT].rpartition(":")[2])
        ours, theirs = multiprocessing.Pipe()
        # In a process of its own: it must answer while this one is busy.
        proxy = multiprocessing.get_context("spawn").Process(target=_serve, args=(server, delay, theirs), daemon=True)
        proxy.start()
        os.environ[_ENDPOINT] = f"http://127.0.0.1:{ours.recv()}"

        def requests() -> Counter[str]:
            ours.send(None)
            return Counter(ours.recv())

        try:
            yield Place(store.lake, store.folder, requests)
        finally:
            proxy.kill()


def _serve(server: int, delay: float, asked: Connection) -> None:
    counts, lock = Counter[str](), threading.Lock()

    def mood(method: str, path: str) -> None:
        listed = method == "GET" and path.count("/") == 1  # of a bucket, not of an object
        with lock:
            counts["LIST" if listed else method] += 1
        time.sleep(delay)

    proxy = Proxy(server)
    proxy.mood = mood
    asked.send(proxy.port)
    while True:
        asked.recv()
        asked.send(dict(counts))
