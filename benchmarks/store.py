"""Where a benchmark's lake lies: in a folder, or on an S3 server of its own, behind a proxy that counts and delays."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

from demo.store import lake_store
from tests.s3.proxy import Proxy

_ENDPOINT = "AWS_ENDPOINT_URL"


class Request(NamedTuple):
    """A request that has come: when (`time.monotonic`), its kind, and what it was for."""

    at: float
    method: str
    path: str


class Place(NamedTuple):
    """The lake as a pipeline's file names it, the folder its files are seen in, and requests sent, by their kind.

    `sent`: the requests themselves, since it was called last; `slow`: have each take so many seconds longer from now.
    """

    lake: str
    folder: Path
    requests: Callable[[], Counter[str]]
    sent: Callable[[], list[Request]] = list
    slow: Callable[[float], None] = lambda _: None


@contextmanager
def lake_at(kind: str, folder: Path, delay: float | None) -> Iterator[Place]:
    """A place for a lake; `delay`: seconds that each request takes longer. Errors: Problem where there is no S3.

    None: no proxy counts and delays, which costs a millisecond of a core for each request.
    """
    with lake_store(kind, folder) as store:
        if kind == "local" or delay is None:
            yield Place(store.lake, store.folder, Counter)
            return
        server = int(os.environ[_ENDPOINT].rpartition(":")[2])
        ours, theirs = multiprocessing.Pipe()
        # In a process of its own: it must answer while this one is busy.
        proxy = multiprocessing.get_context("spawn").Process(target=_serve, args=(server, delay, theirs), daemon=True)
        proxy.start()
        os.environ[_ENDPOINT] = f"http://127.0.0.1:{ours.recv()}"

        def requests() -> Counter[str]:
            ours.send("counts")
            return Counter(ours.recv())

        def sent() -> list[Request]:
            ours.send("sent")
            return [Request(*one) for one in ours.recv()]

        def slow(seconds: float) -> None:
            ours.send(seconds)
            ours.recv()

        try:
            yield Place(store.lake, store.folder, requests, sent, slow)
        finally:
            proxy.kill()


def _serve(server: int, delay: float, asked: Connection) -> None:
    counts, lock, sent = Counter[str](), threading.Lock(), deque[tuple[float, str, str]](maxlen=10_000)

    def mood(method: str, path: str) -> None:
        listed = method == "GET" and path.count("/") == 1  # of a bucket, not of an object
        kind = "LIST" if listed else method
        with lock:
            counts[kind] += 1
            sent.append((time.monotonic(), kind, path))
            wait = delay
        time.sleep(wait)

    proxy = Proxy(server)
    proxy.mood = mood
    asked.send(proxy.port)
    while True:
        what = asked.recv()
        with lock:
            if isinstance(what, float):
                delay = what
            asked.send({"counts": dict(counts), "sent": list(sent)}.get(what))
            if what == "sent":
                sent.clear()
