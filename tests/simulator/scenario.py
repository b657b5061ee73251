"""One schedule: everything that a seed decides, run to its end."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from functools import lru_cache

from clickjoin.config import Pipeline
from clickjoin.setup import initialise
from tests.simulator import clock, logs, rust
from tests.simulator.actors import Cast
from tests.simulator.model import Lake
from tests.simulator.oracle import Oracle
from tests.simulator.world import START, Odds, Violation, World

_SIDE = {"source": {"kind": "files", "path": "/nowhere/*"}, "event_id": "event_id", "event_time": "embedded"}


_ADAPTERS = {
    "clickjoin.joiner.adapter:Merge": 0.6,
    "tests.simulator.dropping:Dropping": 0.2,
    "tests.simulator.dropping:DroppingTables": 0.2,
}
_TABLES = ("primary", "foreign", "registry", "joined", "pending", "batches", "boundary", "timeline")
_POINTS = [(what, name) for what in ("read", "commit") for name in _TABLES]


@dataclass(frozen=True)
class Bent:
    """What a kind of schedule is bent to: points where processes fall asleep (see Odds.weak), and chances of jobs."""

    weak: dict[tuple[str, str], tuple[float, float, float]] | None = None
    gc: float = 0.4
    reshard: float = 0.3
    late: tuple[float, float] = (0.2, 200)  # share of queries that are written late, and by how many seconds at most
    most: int = 6  # events a batch
    slow: float = 0.5
    points: tuple[int, int] = (80, 400)
    until: dict[tuple[str, str], str] = field(default_factory=dict)
    fatal: dict[tuple[str, str], float] = field(default_factory=dict)
    replicas: float = 0.8
    ticks: tuple[float, ...] = (0.05, 0.3, 1.0, 2.0)
    delay: int = 10  # seconds to the first retry
    verify: float = 0.2
    fill: float = 0.1
    harm: int = 0  # how often at most somebody removes rows of the output
    lag: float = 0  # seconds that the second replica may come after the first
    span: tuple[float, float] | None = None  # event times, in seconds from the start


# More than half of all schedules are bent to what the finer protections are for: where a process that sleeps between
# what it has read and what it commits sees the world change most.
_BENTS = (
    *[Bent()] * 3,
    # A copy of a batch looks up late, finds what has come meanwhile, and dies with its claim.
    Bent(
        weak={("read", "primary"): (0.4, 5, 30)},
        fatal={("commit", "joined"): 0.7},
        gc=0,
        reshard=0,
        replicas=0.3,
        most=1,
        late=(0.7, 40),
        ticks=(0.05, 0.3),
        delay=40,
        span=(-30, 150),
    ),
    # A batch reads the registry long after it read the boundary, and another replica has claimed its ids before.
    Bent(
        weak={("read", "registry"): (0.15, 30, 150), ("commit", "registry"): (0.15, 30, 150)},
        until={("read", "registry"): "-registry"},
        gc=2,
        reshard=0,
        replicas=1,
        lag=60,
        slow=0.8,
        points=(300, 600),
        span=(-240, -10),
    ),
    # Two rewrite the same closed bucket of many small files.
    Bent(weak={("commit", "joined"): (0.4, 10, 90)}, gc=2, reshard=0, most=1, span=(-238, -201)),
    # Rows of the output are removed by hand: verifications find them, and have them joined again.
    Bent(gc=0, verify=1, harm=3),
    # An entry of the timeline is written after the time that it is from, while events of that time land.
    Bent(
        weak={("commit", "timeline"): (1, 0, 0), ("commit", "registry"): (0.5, 10, 60)},
        until={("commit", "timeline"): "+foreign"},
        slow=0.8,
        points=(400, 700),
        gc=0,
        reshard=1,
        replicas=1,
        lag=20,
        late=(0.4, 60),
        ticks=(0.3, 1.0),
        delay=20,
        span=(125, 175),
    ),
    # Dates below the boundary are filled by two at once, while batches from before it moved are still under way.
    Bent(
        weak={("read", "registry"): (0.15, 30, 150), ("commit", "registry"): (0.3, 60, 240)},
        gc=2,
        reshard=0,
        fill=1,
        replicas=1,
        lag=60,
        slow=0.8,
        points=(300, 600),
        span=(-240, -10),
    ),
)


@dataclass
class Outcome:
    """What became of a schedule."""

    seed: int
    fault: str | None
    counts: dict[str, int]
    trace: list[str]


@lru_cache
def pipeline(adapter: str, max_events: int, delay: int = 10) -> Pipeline:
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
            "retry": {
                "first_delay": f"{delay}s",
                "backoff": 2,
                "max_delay": f"{2 * delay}s",
                "max_age": f"{3 * delay}s",
                "max_attempts": 2,
            },
            # Some batches are larger than that: Spark writes those, and the process itself the others.
            "batch": {"max_events": max_events, "local": "400B"},
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
    adapter = rng.choices([*_ADAPTERS], [*_ADAPTERS.values()])[0]
    lake = _empty(adapter).fork()
    rust.install(lake)
    bent = _BENTS[seed % len(_BENTS)]
    world = World(seed, lake, _odds(rng, bent), verbose=verbose)
    world.now = START
    clock.install(world.clock, world.sleep)
    until = rng.choice([-10, 120, 300])
    first, last = bent.span or (-240, until)
    streams = logs.draw(rng, first, last, bent.late)
    world.complete = streams.last
    world.grow = lambda: streams.grow(world.random, world.now, all_of_it=not world.live)
    cast = Cast(world, pipeline(adapter, rng.randint(1, bent.most), bent.delay), streams)
    oracle = Oracle(lake, streams)
    fault = None
    try:
        _start(world, cast, rng, bent)
        world.run()
        oracle.at_the_end()
    except Violation as found:
        fault = str(found)
    finally:
        world.end()
    counts = {"points": world.points, "crashes": world.crashes, "zombies": world.zombies, "joined": oracle.joined}
    return Outcome(seed, fault, counts, world.trace or [])


def _odds(rng: random.Random, bent: Bent) -> Odds:
    return Odds(
        stay=rng.choice([0.3, 0.7, 0.9]),
        crash=rng.choice([0.0, 0.01, 0.03]),
        sleep=rng.choice([0.0, 0.01, 0.03]),
        tick=rng.choice(bent.ticks),
        points=rng.randint(*bent.points),
        slow=bent.slow,
        weak=bent.weak or {rng.choice(_POINTS): (0.2, 1, 60)},
        until=bent.until,
        fatal=bent.fatal,
    )


def _start(world: World, cast: Cast, rng: random.Random, bent: Bent) -> None:
    def skew() -> float:
        return rng.uniform(-logs.SKEW, logs.SKEW)

    for replica in ["east", "west"] if rng.random() < bent.replicas else ["east"]:
        own, behind = skew(), bent.lag if replica == "west" else 0.0
        cast.idle[replica] = max(behind, 6.0)
        world.start(replica, "join", own, cast.job(cast.join), rng.uniform(0, behind))
        world.start(replica, "retry", own, cast.job(cast.retry), rng.uniform(0, 10))
        if rng.random() < 0.3:
            world.start(replica, "redrive", own, cast.job(cast.redrive), rng.uniform(20, 120))
    for name in ("east", "west")[: 2 if bent.gc > 1 else 1]:  # by hand, beside the one on schedule
        if rng.random() < bent.gc:
            times = rng.randint(1, 4) * round(bent.gc + 0.5)
            collector = cast.collector(times, 0 if bent.gc > 1 else rng.choice([0, 4, 30]))
            world.start(name, "gc", skew(), collector, rng.uniform(0, 90))
    for name in ("west", "east")[: 2 if bent.fill == 1 else 1]:
        if rng.random() < bent.fill:
            world.start(name, "fill", skew(), cast.filler(rng.randint(1, 4)), rng.uniform(0, 120))
    _check_and_change(world, cast, rng, bent, skew())


def _check_and_change(world: World, cast: Cast, rng: random.Random, bent: Bent, skew: float) -> None:
    if rng.random() < bent.verify:
        verifier = cast.verifier(rng.randint(1, 3), rng.choice([0, 4]), mends=bent.harm > 0)
        world.start("east", "verify", skew, verifier, rng.uniform(0, 90))
    if bent.harm:
        world.start("somebody", "harm", 0, cast.vandal(rng.randint(1, bent.harm)), rng.uniform(20, 120))
    if rng.random() < bent.reshard:
        resharder = cast.resharder([3] if bent.reshard == 1 else rng.sample([1, 3, 4], 2))
        world.start("east", "reshard", skew, resharder, rng.uniform(0, 40))
