"""What happens to a pipeline: what arrives, and the work that is then done, which may be cut short and done again."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from clickjoin.backup.restore import restore
from clickjoin.backup.take import take
from clickjoin.jobs.checking import verify
from clickjoin.jobs.dates import close_day
from clickjoin.jobs.upkeep import forget, gc, rebuild, reshard
from clickjoin.model.errors import DateBusy
from tests.conformance.world import BASE, HOUR, World, click, query
from tests.sampled import FULL

Work = Callable[[World], object]
LANDED = ("journal", "primary", "foreign", "metrics")


@dataclass(frozen=True)
class Step:
    """What arrives comes once; the work is carried through, however often that takes."""

    arrive: Work
    work: Work = World.work


@dataclass(frozen=True)
class Scenario:
    """`tables`: those that it commits to at least once, whichever engine works; kills are tried at each of them.

    `begin`: what is in the logs before any process begins.
    """

    name: str
    steps: tuple[Step, ...]
    tables: tuple[str, ...]
    fields: Mapping[str, Any] = field(default_factory=dict)
    begin: Work = lambda _: None


Q, LATE, OTHER = query("q"), query("late", 5, item="l"), query("other", 1)
NEVER, Q2 = query("never", 9), query("q", 4, who="u")


def _first(world: World) -> None:
    """One that joins, its repeat, one filtered, one whose query is late, one whose query never comes; bad records."""
    world.queries(Q, "{broken")
    a = click("a", 2, Q, position=1, user="U")
    world.clicks(a, a, click("b", 3, Q, position=9), click("c", 6, LATE, position=1), click("n", 10, NEVER, position=1))
    world.clicks("{broken", '{"event_id": 1.5}')


def _late(world: World) -> None:
    world.now += 11
    world.queries(LATE)
    world.clicks(click("a", 2, Q, position=1, user="U"), click("d", 12, Q, position=1))


def _later(world: World, seconds: float) -> None:
    world.now += seconds


def _both(world: World) -> None:
    world.queries(Q, OTHER)
    world.clicks(click("a", 2, Q, item="7"), click("b", 3, OTHER, item="x"), click("c", 6, LATE, item=3))


def _old(world: World) -> None:
    """Old ones, and one so much newer that the boundary may pass them; nothing waits, which would hold it back."""
    world.now = BASE + 5.5 * HOUR
    recent = query("r", 5 * HOUR)
    world.queries(Q, recent)
    world.clicks(click("a", 2, Q), click("b", 3, Q), click("new", 5 * HOUR + 1, recent))


def _collect(world: World) -> None:
    gc(world.spark, world.pipeline, "main", _silent, wait=0)


def _after_gc(world: World) -> None:
    """Repeats, one of them of what the registry has forgotten, and one that comes too late."""
    recent = query("r", 5 * HOUR)
    world.clicks(click("a", 2, Q), click("old", 4, Q), click("new", 5 * HOUR + 1, recent))


def _redriven(world: World) -> None:
    world.queries(NEVER)
    world.work()


def _redrive(world: World) -> None:
    engine = world.engine()
    engine.finish_redrive()
    engine.redrive()
    world.work()


def _forget(world: World) -> None:
    forget(world.spark, world.pipeline, "main", _silent, where="foreign.user=U", request="R1", apply=True, wait=0)


SOON = datetime.fromtimestamp(BASE + 9 * HOUR, UTC)


def _reshard(world: World) -> None:
    """From a time that no clock can read yet; where it is in the timeline already, a killed one has put it there."""
    from clickjoin.model.errors import ConfigError

    try:
        reshard(None, world.pipeline, "main", _silent, shards=7, since=SOON.isoformat())
    except ConfigError as error:
        assert "already" in str(error)  # noqa: PT017  (every other refusal is a failure)
    world.work()


def events(world: World, first: int, last: int) -> None:
    world.now += HOUR if first else 0
    world.clicks(
        *({"messageId": f"{n:08x}-1111-4222-8333-444455556666", "n": n, "at": world.now} for n in range(first, last))
    )


def by_date(world: World, action: str = "rebuild") -> None:
    """Work on the date of the first events; once it is free, where a run that held it was killed."""
    for _ in range(40):
        try:
            return close_once(world, action)
        except DateBusy:
            time.sleep(0.5)
    raise AssertionError("the date is held for ever")


def close_once(world: World, action: str = "rebuild") -> None:
    """The same, once. Errors: DateBusy."""
    day = datetime.fromtimestamp(BASE, UTC).date().isoformat()
    close_day(world.spark, world.pipeline, "main", _silent, date=day, action=action)


def _typed(world: World) -> None:
    """Rows get other columns than those that they were published with."""
    world.change(adapter="clickjoin.joiner.adapter:BothRecords", **TYPED)


def one_more(world: World, number: int) -> None:
    """One click in a batch of its own, so that each table gets one file more, and the one before it again."""
    world.queries(Q)
    world.clicks(click("a", number, Q), click("a", number - 1, Q))


def _touches(world: World) -> None:
    """Clicks whose last touch has not arrived, though one before it has, and one whose user has none."""
    world.queries(query("t1", 1, who="u"), OTHER | {"who": "v"})
    world.clicks(click("a", 5, Q2, who="u"), click("n", 6, NEVER, who="w"))


def _passed(world: World) -> None:
    """It arrives, and the stream of touches comes further; one more click of each user, and one again."""
    world.now += 11
    world.queries(Q2, query("beat", 30, who=None))
    world.clicks(click("b", 7, OTHER, who="v"), click("c", 8, Q2, who="u"), click("a", 5, Q2, who="u"))


def _saved(world: World) -> None:
    take(world.pipeline, world.folder / "backups", _silent, wait=5)


def _put_back(world: World) -> None:
    restore(world.pipeline, world.folder / "backups", "", _silent, force=True)
    world.end()
    world.work()


def _rebuilt(world: World, what: str) -> None:
    """As someone does who has stopped the joins; what was under way when the table went is repaired after."""
    world.forget_processes()
    rebuild(world.spark, world.pipeline, "main", _silent, what=what, replace=True)
    verify(
        world.spark, world.pipeline, "main", _silent, since=datetime.fromtimestamp(BASE, UTC).isoformat(), repair=True
    )
    world.work()


def _silent(_: object) -> None:
    pass


BY_ID: dict[str, Any] = {
    "stream": {"source": {"kind": "files", "path": "foreign/*"}, "event_id": "messageId", "event_time": "at"},
    "registry": {"identity": "id", "shards": 3},
}
ITEM, NAMED = {"from": "foreign.item", "type": "BIGINT"}, {"from": "primary.item", "type": "STRING"}
TYPED = {"output": {"columns": {"item": ITEM, "named": NAMED}}}
KEPT = {"registry": {"retention": "3h", "bucket": "1h", "shards": 2}, "verify": {"window": "1h"}}
TOP = {"adapter": "clickjoin.examples.adapters:TopPositions"}
_JOINED = Step(_first), Step(_late), Step(partial(_later, seconds=11))
_SIDE = ("quarantine", "pending", "filtered", "unjoinable")

JOIN = Scenario("join", _JOINED, (*LANDED, "registry", "joined", *_SIDE), TOP)
TYPES = Scenario("typed", (Step(_both), Step(_late)), (*LANDED, "registry", "joined", "pending"), TYPED)
ONE_BY_ID = Scenario(
    "by id",
    (Step(partial(events, first=0, last=8)), Step(partial(events, first=4, last=12))),
    ("journal", "foreign", "registry", "deduplicated", "metrics"),
    BY_ID,
    partial(events, first=0, last=1),
)
GC = Scenario(
    "gc",
    (Step(_old), Step(partial(_later, seconds=0), _collect), Step(_after_gc)),
    (*LANDED, "registry", "joined", "registry_boundary", "expired"),
    KEPT,
)
REDRIVE = Scenario(
    "redrive", (*_JOINED, Step(_redriven, _redrive), Step(partial(_later, seconds=11))), ("unjoinable", "pending"), TOP
)
RESHARD = Scenario("reshard", (Step(_first), Step(_late, _reshard)), ("shard_timeline", "journal", "registry"), TOP)
FORGET = Scenario("forget", (*_JOINED, Step(partial(_later, seconds=0), _forget)), ("forgotten", "joined"), TOP)
DATED: dict[str, Any] = {"close": {"lease": "5s"}, "quality": {"disable": ["*"]}}  # whose checks take Spark a while
REBUILD = Scenario("rebuild", (Step(_both), Step(_typed, by_date), Step(_late)), ("dates", "joined"), DATED)
FILL = Scenario(
    "fill",
    (Step(_first), Step(_late, partial(by_date, action="fill")), Step(partial(_later, seconds=11))),
    ("dates", "registry", "joined", "pending"),
    TOP | DATED,
)
COMPACT = Scenario(
    "compact",
    (
        *(Step(partial(one_more, number=number)) for number in range(1, 6)),
        Step(partial(_later, seconds=0), _collect),
        Step(partial(one_more, number=6)),
    ),
    ("registry", "joined", "primary", "foreign"),
    {"registry": {"retention": "100h", "bucket": "1h", "shards": 1}, "output": {"partition": ["bucket"]}},
)
BACKUP = Scenario(
    "backup",
    (Step(_first), Step(partial(_later, seconds=0), _saved), Step(_late), Step(partial(_later, seconds=0), _put_back)),
    (*LANDED, "registry", "joined", "pending"),
    TOP,
)
_MATCH: dict[str, Any] = {
    "foreign": {
        "source": {"kind": "files", "path": "foreign/*"}, "event_id": "event_id", "event_time": "embedded",
        "match": {"on": "who", "within": "60s"},
    },
    "close": {"max_out_of_orderness": "0s"},
}  # fmt: skip
MATCH = Scenario(
    "match",
    (Step(_touches), Step(_passed), Step(partial(_later, seconds=11))),
    (*LANDED, "registry", "joined", "pending", "unjoinable"),
    _MATCH,
)
REGISTRY = Scenario(
    "registry rebuild", (Step(_first), Step(_late, partial(_rebuilt, what="registry"))), ("journal", "registry"), TOP
)
JOURNAL = Scenario(
    "journal rebuild", (Step(_both), Step(_late, partial(_rebuilt, what="journal"))), ("journal", "registry")
)
MATCH_ALL = replace(
    MATCH,
    name="match all",
    fields=_MATCH
    | {"foreign": {**_MATCH["foreign"], "match": {"on": "who", "within": "60s", "pick": "all", "limit": 2}}},
)
ALL = (JOIN, TYPES, ONE_BY_ID, GC, REDRIVE, RESHARD, FORGET, REBUILD, FILL, COMPACT, BACKUP, MATCH)
ALL += (MATCH_ALL, REGISTRY, JOURNAL) if FULL else ()
