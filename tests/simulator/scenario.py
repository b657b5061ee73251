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


@dataclass
class Outcome:
    """What became of a schedule."""

    seed: int
    fault: str | None
    counts: dict[str, int]
    trace: list[str]


@lru_cache
def pipeline(adapter: str, max_events: int) -> Pipeline:
    """The pipeline of a schedule."""
    return Pipeline.model_validate(
        {
            "pipeline": "sim",
            "lake": "/sim",
            "primary": _SIDE,
            "foreign": _SIDE | {"primary_id": "query_id", "primary_time": "embedded"},
            "registry": {"retention": "2h", "bucket": "1h", "shards": 2},
            "verify": {"window": "1h"},
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
    streams = logs.draw(rng, -7200, -60)
    world.grow = lambda: streams.grow(world.random, all_of_it=not world.live)
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
        tick=rng.choice([0.05, 0.3, 1.0]),
        points=rng.randint(80, 400),
    )


def _start(world: World, cast: Cast, rng: random.Random) -> None:
    replicas = ["east", "west"] if rng.random() < 0.8 else ["east"]
    for replica in replicas:
        skew = rng.uniform(-30, 30)
        world.start(replica, "join", skew, cast.job(cast.join))
        world.start(replica, "retry", skew, cast.job(cast.retry), rng.uniform(0, 10))
        if rng.random() < 0.3:
            world.start(replica, "redrive", skew, cast.job(cast.redrive), rng.uniform(20, 120))
