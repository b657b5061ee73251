"""One schedule: everything that a seed decides, run to its end."""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import lru_cache

from clickjoin.lake_setup import initialise
from tests.simulator import backups, clock, heartbeats, local_times, logs, matches, processing, rust, workers
from tests.simulator.actors import Cast
from tests.simulator.bent import POINTS, Bent
from tests.simulator.bents import bent_of
from tests.simulator.disasters import Unheard, prepare
from tests.simulator.heartbeats import Heartbeats
from tests.simulator.logs import Logs
from tests.simulator.model import Lake
from tests.simulator.oracle import Oracle
from tests.simulator.pipelines import ADAPTERS, downstream, pipeline_of
from tests.simulator.world import START, Odds, Violation, World


@dataclass
class Outcome:
    """What became of a schedule."""

    seed: int
    fault: str | None
    counts: dict[str, int]
    trace: list[str]


@lru_cache
def _empty(adapter: str, kind: str, chain: bool) -> Lake:
    lake = Lake()
    rust.install(lake)
    initialise(pipeline_of(bent_of(0, kind), adapter, 5))
    if chain:
        initialise(downstream(5, 10))
    return lake


def run(seed: int, *, kind: str = "", verbose: bool = False) -> Outcome:
    """Run one schedule, of its own kind or of another."""
    rng = random.Random(f"scenario {seed}")
    random.seed(seed)
    adapter = rng.choices([*ADAPTERS], [*ADAPTERS.values()])[0]
    bent = bent_of(seed, kind)
    lake = _empty(adapter, bent.name if bent.alone or bent.by_id or bent.times or bent.match else "", bent.chain).fork()
    rust.install(lake)
    world = World(seed, lake, _odds(rng, bent), verbose=verbose)
    world.now = START
    clock.install(world.clock, world.sleep)
    lake.gaps, lake.power_fails = bent.gaps, bent.disaster == "power"
    lake.answer = Unheard(world, bent.unheard)
    until = rng.choice([-10, 120, 300])
    first, last = bent.span or (-240, until)
    streams = _drawn(rng, bent, first, last)
    world.complete, streams.clocks_are_wrong = streams.last, bent.days > 0
    world.grow = lambda: streams.grow(world.random, world.now, all_of_it=not world.live)
    most = rng.randint(1, bent.most)
    whole = pipeline_of(bent, adapter, most)
    workers.deal(apart=whole.by_id)
    cast = Cast(world, whole, streams)
    if bent.times:
        cast.times = local_times.Differing(bent.times, whole, world, rng, lake)
    one_time = whole.by_id or bool(bent.times)
    alone = bool(bent.alone or bent.match)
    oracle = Oracle(lake, whole.root, streams, alone=alone, by_id=one_time, absent=bent.absent)
    oracles = [oracle]
    if bent.disaster == "restore-live":
        oracle.forgives = lambda: world.struck
    beats = heartbeats.Heartbeats(lake, whole.root, streams) if bent.beats else None
    cast.budgets = bent.budgets
    cast.goes_on = heartbeats.GOES_ON if beats else 0
    prepare(world, rng, bent.disaster)
    fault = None
    try:
        _start(world, cast, rng, bent)
        _start_processing(cast, rng, bent)
        if bent.chain:
            oracles.append(_start_downstream(cast, oracle, rng, bent))
        world.run()
        _ended(world, oracles, bent, cast, beats)
    except Violation as found:
        fault = str(found)
    finally:
        world.end()
    counts = {
        "points": world.points,
        "crashes": world.crashes,
        "zombies": world.zombies,
        "joined": sum(each.joined for each in oracles),
    }
    if bent.chain:
        counts["chained"] = oracles[-1].joined
    counts |= world.counts | {"refused": int(bool(world.refusals)), "removed": lake.removed}
    return Outcome(seed, fault, counts, world.trace or [])


def _drawn(rng: random.Random, bent: Bent, first: float, last: float) -> Logs:
    streams = logs.draw(rng, first, last, bent.late)
    if bent.alone or bent.by_id:
        streams.repeat(rng, bent.restamped if bent.by_id or bent.alone == "id" else 0.0)
        streams.primary = [] if bent.alone else streams.primary
    if bent.times:
        local_times.write(bent.times, streams)
    if bent.match:
        matches.write(streams, rng)
    if bent.beats:
        heartbeats.trouble(rng, streams)
    return streams


def _ended(world: World, oracles: list[Oracle], bent: Bent, cast: Cast, beats: Heartbeats | None) -> None:
    if bent.disaster == "restore-live":
        _put_right(world, cast)
    if not world.refusals:
        _at_the_end(oracles, bent, cast, beats)
    elif not bent.disaster.startswith("restore"):
        raise Violation(f"tables that nobody has put back are refused: {world.refusals[0]}")


def _put_right(world: World, cast: Cast) -> None:
    """What a store has lost under processes that live on is found by verification, and put right."""
    for _ in range(3):
        before = world.counts.get("fixed", 0)
        for role, main in (("verify", cast.repairer()), ("join", cast.job(cast.join)), ("retry", cast.job(cast.retry))):
            if not world.refusals:
                cast.start("east", role, 0, main, 0)
                world.run()
        if world.counts.get("fixed", 0) == before:
            return


def _at_the_end(oracles: list[Oracle], bent: Bent, cast: Cast, beats: Heartbeats | None) -> None:
    for each in oracles:
        each.at_the_end()
    lake, root = cast.world.lake, cast.pipeline.root
    if bent.match:
        joined, given_up = (lake.tables[f"{root}/{name}"].newest.rows() for name in ("joined", "unjoinable"))
        matches.require_right(cast.logs, joined, given_up)
    if bent.process:
        cast.world.counts["signals"] = processing.require_right(lake, cast.pipeline)
    if beats:
        cast.world.counts["heartbeats"] = len(beats.tokens)
        beats.at_the_end(lake.tables[f"{root}/process/late"].newest.rows())
        processing.require_as_if_undisturbed(cast)


def _odds(rng: random.Random, bent: Bent) -> Odds:
    return Odds(
        stay=rng.choice([0.3, 0.7, 0.9]),
        crash=rng.choice([0.0, 0.01, 0.03]),
        sleep=rng.choice([0.0, 0.01, 0.03]),
        tick=rng.choice(bent.ticks),
        points=rng.randint(*bent.points),
        slow=bent.slow,
        weak=bent.weak or {rng.choice(POINTS): (0.2, 1, 60)},
        until=bent.until,
        fatal=bent.fatal,
    )


def _start(world: World, cast: Cast, rng: random.Random, bent: Bent) -> None:
    def skew(likely: float = 0.7) -> float:
        return _skew(rng, bent.days, likely)

    for replica in ["east", "west"] if rng.random() < bent.replicas else ["east"]:
        own, behind = skew(0.3), bent.lag if replica == "west" else 0.0
        cast.idle[replica] = max(behind, 6.0)
        cast.start(replica, "join", own, cast.job(cast.join), rng.uniform(0, behind))
        cast.start(replica, "retry", own, cast.job(cast.retry), rng.uniform(0, 10))
        if rng.random() < 0.3:
            cast.start(replica, "redrive", own, cast.job(cast.redrive), rng.uniform(20, 120))
    for name in ("east", "west")[: 2 if bent.gc > 1 else 1]:  # by hand, beside the one on schedule
        if rng.random() < bent.gc:
            times = rng.randint(1, 4) * round(bent.gc + 0.5)
            collector = cast.collector(times, 0 if bent.gc > 1 else rng.choice([0, 4, 30]))
            cast.start(name, "gc", skew(), collector, rng.uniform(0, 90))
    for name in ("west", "east")[: 2 if bent.fill == 1 else 1]:
        if rng.random() < bent.fill:
            cast.start(name, "fill", skew(), cast.filler(rng.randint(1, 4)), rng.uniform(0, 120))
    _check_and_change(world, cast, rng, bent, skew())


def _start_processing(cast: Cast, rng: random.Random, bent: Bent) -> None:
    for name in ("first", "second") if bent.process else ():
        cast.start(name, "process", _skew(rng, bent.days, 0.3), processing.worker(cast), rng.uniform(0, 60))
    if bent.disaster == "restore-backup":
        cast.start("somebody", "backup", 0, backups.taker(cast), rng.uniform(0, 60))


def _start_downstream(upstream: Cast, oracle: Oracle, rng: random.Random, bent: Bent) -> Oracle:
    """The second pipeline of a chain: its logs, its processes, and what must hold of it."""
    world = upstream.world
    streams = logs.conversions(rng, upstream.logs, bent.late)
    grow, world.complete = world.grow, max(world.complete, streams.last)

    def grow_both() -> None:
        grow()
        streams.grow(world.random, world.now, all_of_it=not world.live)

    world.grow = grow_both
    cast = Cast(world, downstream(rng.randint(1, bent.most), rng.choice([10, 60])), streams, upstream)
    for replica in ["south", "north"] if rng.random() < bent.replicas else ["south"]:
        skew = _skew(rng, bent.days, 0.3)
        cast.start(replica, "join", skew, cast.job(cast.join), rng.uniform(0, 40))
        cast.start(replica, "retry", skew, cast.job(cast.retry), rng.uniform(0, 40))
    if rng.random() < bent.verify:
        cast.start("south", "verify", 0, cast.verifier(rng.randint(1, 3), 4), rng.uniform(0, 90))
    return Oracle(world.lake, cast.pipeline.root, streams, of=oracle)


def _skew(rng: random.Random, days: float, likely: float) -> float:
    """By how many seconds a clock is wrong: a few, or days."""
    if days and rng.random() < likely:
        return rng.choice([-1, 1]) * rng.uniform(0.6, 1) * days * 86_400
    return rng.uniform(-logs.SKEW, logs.SKEW)


def _check_and_change(world: World, cast: Cast, rng: random.Random, bent: Bent, skew: float) -> None:
    if rng.random() < bent.verify:
        verifier = cast.verifier(rng.randint(1, 3), rng.choice([0, 4]), fixes=bent.harm > 0)
        cast.start("east", "verify", skew, verifier, rng.uniform(0, 90))
    if bent.harm:
        cast.start("somebody", "harm", 0, cast.vandal(rng.randint(1, bent.harm)), rng.uniform(20, 120))
    if rng.random() < bent.reshard:
        resharder = cast.resharder([3] if bent.reshard == 1 else rng.sample([1, 3, 4], 2))
        cast.start("east", "reshard", skew, resharder, rng.uniform(0, 40))
