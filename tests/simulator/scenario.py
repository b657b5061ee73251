"""One schedule: everything that a seed decides, run to its end."""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import lru_cache

from clickjoin.config import Pipeline
from clickjoin.setup import initialise
from tests.simulator import clock, logs, rust
from tests.simulator.actors import Cast
from tests.simulator.model import Lake
from tests.simulator.oracle import Oracle
from tests.simulator.world import START, Odds, Violation, World

_SIDE = {"source": {"kind": "files", "path": "/nowhere/*"}, "event_id": "event_id", "event_time": "embedded"}


_TABLES = ("primary", "foreign", "registry", "joined", "pending", "batches")
# Where a process that sleeps sees the world change most: between what it has read and what it commits.
_WEAK = [(what, name) for what in ("read", "commit") for name in _TABLES]
_WEAK += [("read", "primary"), ("read", "registry"), ("commit", "registry"), ("commit", "timeline")] * 3


@dataclass
class Outcome:
    """What became of a schedule."""

    seed: int
    fault: str | None
    counts: dict[str, int]
    trace: list[str]


@lru_cache
def pipeline(adapter: str, max_events: int) -> Pipeline:
    """The pipeline of a schedule: buckets of a minute, kept for one, so that all of its life goes by."""
    return Pipeline.model_validate(
        {
            "pipeline": "sim",
            "lake": "/sim",
            "primary": _SIDE,
            "foreign": _SIDE | {"primary_id": "query_id", "primary_time": "embedded"},
            "registry": {"retention": "1m", "bucket": "1m", "shards": 2},
            "verify": {"window": "1m"},
            "keep": {"pending": "1m"},
            "limits": {"max_skew": f"{2 * logs.SKEW:.0f}s"},
            "retry": {"first_delay": "10s", "backoff": 2, "max_delay": "20s", "max_age": "30s", "max_attempts": 2},
            "batch": {"max_events": max_events},
            "adapter": adapter,
        }
    )


@lru_cache
def _empty(adapter: str) -> Lake:
    lake = Lake()
    rust.install(lake)
    initialise(pipeline(adapter, 5))
    return lake


def run(seed: int, *, verbose: bool = False) -> Outcome:
    """Run one schedule."""
    rng = random.Random(f"scenario {seed}")
    random.seed(seed)
    adapter = "clickjoin.joiner.adapter:Merge" if rng.random() < 0.8 else "tests.simulator.dropping:Dropping"
    lake = _empty(adapter).fork()
    rust.install(lake)
    world = World(seed, lake, _odds(rng), verbose=verbose)
    world.now = START
    clock.install(world.clock, world.sleep)
    streams = logs.draw(rng, -240, rng.choice([-10, 120, 300]))
    world.complete = streams.last
    world.grow = lambda: streams.grow(world.random, world.now, all_of_it=not world.live)
    cast = Cast(world, pipeline(adapter, rng.randint(2, 6)), streams)
    oracle = Oracle(lake, streams)
    fault = None
    try:
        _start(world, cast, rng)
        world.run()
        oracle.at_the_end()
    except Violation as found:
        fault = str(found)
    finally:
        world.end()
    counts = {"points": world.points, "crashes": world.crashes, "zombies": world.zombies, "joined": oracle.joined}
    return Outcome(seed, fault, counts, world.trace or [])


def _odds(rng: random.Random) -> Odds:
    return Odds(
        stay=rng.choice([0.3, 0.7, 0.9]),
        crash=rng.choice([0.0, 0.01, 0.03]),
        sleep=rng.choice([0.0, 0.01, 0.03]),
        tick=rng.choice([0.05, 0.3, 1.0, 2.0]),
        points=rng.randint(80, 400),
        weak=rng.choice(_WEAK),
    )


def _start(world: World, cast: Cast, rng: random.Random) -> None:
    replicas = ["east", "west"] if rng.random() < 0.8 else ["east"]
    for replica in replicas:
        skew = rng.uniform(-logs.SKEW, logs.SKEW)
        world.start(replica, "join", skew, cast.job(cast.join))
        world.start(replica, "retry", skew, cast.job(cast.retry), rng.uniform(0, 10))
        if rng.random() < 0.3:
            world.start(replica, "redrive", skew, cast.job(cast.redrive), rng.uniform(20, 120))
    if rng.random() < 0.4:
        skew = rng.uniform(-logs.SKEW, logs.SKEW)
        world.start("east", "gc", skew, cast.collector(rng.randint(1, 4), rng.choice([0, 4, 30])), rng.uniform(0, 90))
    if rng.random() < 0.3:
        skew = rng.uniform(-logs.SKEW, logs.SKEW)
        world.start("east", "reshard", skew, cast.resharder(rng.sample([1, 3, 4], 2)), rng.uniform(0, 60))
