"""Where the lake of a chaos run lies: on the disk, or on an S3 server that is killed too, behind a proxy with moods."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from stack.gateway import Gateway, serving
from stack.kafka_broker import serving as broker
from tests.faults.chaos.logs import Logs, Objects, Topics
from tests.s3.proxy import Proxy, Rule

_BUCKET = "chaos"


class Lake(NamedTuple):
    """The lake as the pipeline's file names it, the folder that its files are seen in, and its server, if any.

    `env`: what leads the programs under test to the server, by the proxy. `logs`: where they lie, if not in a folder.
    `calm`: ends the proxy's moods, so that what is left can be counted soon.
    """

    place: str
    disk: Path
    server: Gateway | None = None
    moods: Counter[str] | None = None
    env: Mapping[str, str] = MappingProxyType({})
    logs: Logs | None = None
    calm: Callable[[], object] = lambda: None


@contextmanager
def lake_for(kind: str, folder: Path, seed: int, logs: str = "local") -> Iterator[Lake]:
    """A place for a lake, and for the logs if they lie on S3 or are topics.

    This process itself uses no proxy: delta-rs would keep the proxy's threads from running.
    """
    if logs == "kafka":
        with broker(folder / "kafka") as server, lake_for(kind, folder, seed) as lake:
            yield lake._replace(logs=Topics(server, folder))
        return
    if kind == "local":
        yield Lake(str(folder / "lake"), folder / "lake")
        return
    with serving(folder / "s3", _BUCKET) as server:
        proxy, moods = Proxy(server.port), Counter[str]()
        proxy.mood = _Moody(random.Random(seed), moods)
        os.environ.update(server.environment())
        disk = server.folder / "data" / _BUCKET
        objects = Objects(server, _BUCKET, seed, moods) if logs == "s3" else None
        place, env = f"s3://{_BUCKET}/lake", server.environment(proxy.port)
        yield Lake(place, disk / "lake", server, moods, env, objects, proxy.calm)
        proxy.stop()


class _Moody:
    """One answer to a commit in four is lost; of all requests some are held for a moment, and some get 503."""

    def __init__(self, rng: random.Random, moods: Counter[str]) -> None:
        self._rng, self._moods = rng, moods

    def __call__(self, method: str, path: str) -> Rule | None:
        chance = self._rng.random()
        if method == "PUT" and "/_delta_log/" in path and chance < 0.25:
            return self._rule("lose", method, path)
        if chance > 0.99:
            return self._rule("refuse", method, path)
        if chance > 0.96:
            return self._rule("hold", method, path, longest=self._rng.uniform(0, 0.5))
        return None

    def _rule(self, does: str, method: str, path: str, longest: float = 0) -> Rule:
        self._moods[does] += 1
        return Rule(does, method, path, longest=longest)
