"""What schedules are bent to: where processes like to sleep, which jobs run, and what goes wrong besides."""

from __future__ import annotations

from dataclasses import dataclass, field

TABLES = ("primary", "foreign", "registry", "joined", "pending", "journal", "registry_boundary", "shard_timeline")
POINTS = [(what, name) for what in ("read", "commit") for name in TABLES]


@dataclass(frozen=True)
class Bent:
    """What a kind of schedule is bent to: points where processes fall asleep (see Odds.weak), and chances of jobs."""

    name: str = "plain"
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
    gaps: bool = False  # committers may sleep between their look at the log and the version that they put there
    unheard: float = 0  # share of commits of which the caller hears that they were refused, or nothing
    days: float = 0  # by how many days clocks may be wrong
    disaster: str = ""  # restore, restore-pending, power: see disasters.py
    span: tuple[float, float] | None = None  # event times, in seconds from the start
    alone: str = ""  # time, id: of one stream, whose events are known by id and time, or by id alone
    by_id: bool = False  # two streams, and foreign events are known by their ids alone
    absent: bool = False  # what a stream has passed without it is given up, long before its attempts are spent
    chain: bool = False  # a second pipeline joins a third stream to the output of the first
    process: bool = False  # processes give the output's events to a processor, key by key
    beats: bool = False  # batches of no records say that time passes


# More than half of all are bent to the finer protections: who sleeps between a read and a commit sees the world change.
BENTS = (
    *[Bent()] * 3,
    # A copy of a batch looks up late, finds what has come meanwhile, and dies with its claim.
    Bent(
        name="late-look-up",
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
        name="old-boundary",
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
    Bent(name="rewriting", weak={("commit", "joined"): (0.4, 10, 90)}, gc=2, reshard=0, most=1, span=(-238, -201)),
    # Rows of the output are removed by hand: verifications find them, and have them joined again.
    Bent(name="by-hand", gc=0, verify=1, harm=3),
    # An entry of the timeline is written after the time that it is from, while events of that time land.
    Bent(
        name="timeline",
        weak={("commit", "shard_timeline"): (1, 0, 0), ("commit", "registry"): (0.5, 10, 60)},
        until={("commit", "shard_timeline"): "+foreign"},
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
        name="filling",
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
    # Spark puts a version long after it looked; delta-rs, or the Spark of another replica, has put the same meanwhile.
    Bent(
        name="gap",
        gaps=True,
        weak={("put", "registry"): (0.6, 5, 60), ("put", "joined"): (0.3, 5, 60), ("put", "pending"): (0.2, 5, 60)},
        until={("put", "registry"): "+registry"},
        gc=2,
        reshard=0,
        replicas=1,
        lag=60,
        most=2,
        slow=0.8,
        points=(200, 500),
        span=(-240, -10),
    ),
    # Commits land, and those who committed hear that they were refused, or an error, or nothing.
    Bent(name="unheard", unheard=0.1, gc=1, points=(200, 500)),
    # Clocks are wrong by days; files go that are old by such a clock.
    Bent(
        name="clocks",
        days=2,
        weak={
            ("commit", "registry"): (0.2, 10, 90),
            ("commit", "joined"): (0.2, 10, 90),
            ("read", "pending"): (0.1, 10, 90),
        },
        gc=2,
        slow=0.8,
        points=(200, 500),
    ),
    # What waits is on disk; the batch sleeps, or dies, and the boundary passes what it was about to call expired.
    Bent(
        name="set-aside",
        weak={("commit", "pending"): (0.5, 60, 240), ("commit", "expired"): (0.3, 60, 240)},
        until={("commit", "pending"): "+registry_boundary", ("commit", "expired"): "+registry_boundary"},
        fatal={("commit", "pending"): 0.8, ("commit", "expired"): 0.8},
        gc=2,
        reshard=0,
        replicas=1,
        late=(0.7, 300),
        lag=60,
        points=(300, 600),
        span=(-330, -120),
        delay=40,
    ),
    # All stop, one table or all are put back to what they were, all go on.
    Bent(name="restore", disaster="restore", replicas=1, lag=40, points=(300, 600), span=(-240, -10)),
    # Table `pending` alone is put back, before a batch with events there is settled, and after a retry claimed them.
    Bent(
        name="restore-pending",
        disaster="restore-pending",
        weak={("commit", "metrics"): (0.6, 60, 300), ("commit", "joined"): (0.4, 60, 300)},
        gc=0,
        reshard=0,
        late=(0.7, 40),
        slow=1,
        replicas=0.3,
        lag=20,
        delay=5,
        points=(150, 500),
        ticks=(0.3, 1.0),
        span=(-60, 60),
    ),
    # The power fails: what nobody has flushed to disk is gone.
    Bent(name="power", disaster="power", replicas=1, lag=40, points=(200, 500), span=(-240, -10)),
)


# Of pipelines of one stream: asked for by name alone.
ALONE = (
    Bent(name="one-stream", alone="time", gc=1, points=(200, 500)),
    Bent(
        name="ids",
        alone="id",
        weak={("read", "registry"): (0.3, 5, 90), ("commit", "registry"): (0.4, 5, 90)},
        gc=1,
        replicas=1,
        lag=20,
        verify=0.5,
        fill=0,
        points=(200, 500),
    ),
    Bent(name="ids-unheard", alone="id", unheard=0.1, gaps=True, gc=1, replicas=1, points=(200, 500), fill=0),
)

# Of two pipelines, of which the second reads the first one's output: asked for by name alone.
CHAINED = (
    Bent(name="chain", chain=True, gc=0.8, reshard=0.2, verify=0.5, points=(250, 600)),
    # Rows of the first one's output are removed by hand, and joined again: they are no new ones to the second.
    Bent(name="chain-by-hand", chain=True, gc=0, verify=1, harm=2, points=(250, 600)),
    # The first one's tables are put back to what they were at one moment; the second one's stay.
    Bent(
        name="chain-restore",
        chain=True,
        disaster="restore-upstream",
        gc=0,
        reshard=0,
        replicas=1,
        lag=20,
        points=(300, 700),
        span=(-240, -10),
    ),
)
# Of a pipeline whose events are given up by the watermark: asked for by name alone.
WATERMARK = Bent(
    name="watermark",
    absent=True,
    weak={("read", "primary"): (0.3, 5, 60), ("commit", "primary"): (0.3, 5, 60)},
    gc=0,
    fill=0,
    late=(0, 1),
    delay=5,
    points=(200, 600),
    span=(0, 60),
)
# Of two streams whose foreign events are known by their ids alone, and come again: asked for by name alone.
BY_ID = (
    Bent(
        name="ids-joined",
        by_id=True,
        weak={("read", "registry"): (0.3, 5, 90), ("commit", "registry"): (0.4, 5, 90)},
        gc=1,
        replicas=1,
        lag=20,
        verify=0.5,
        points=(250, 600),
    ),
    Bent(name="ids-joined-unheard", by_id=True, unheard=0.1, gaps=True, gc=1, replicas=1, points=(250, 600)),
)
# Its output is processed key by key, the second time until a backup is put back: asked for by name alone.
PROCESS = (
    Bent(name="process", process=True, gc=0.3, reshard=0, points=(250, 600)),
    Bent(name="process-restore", process=True, disaster="restore-backup", gc=0, reshard=0, points=(300, 700)),
)
# The same, while batches of no records say that time passes: asked for by name alone.
BEATS = Bent(
    name="heartbeats",
    process=True,
    beats=True,
    weak={
        ("list", "log of primary"): (0.05, 5, 60),
        ("list", "log of foreign"): (0.1, 5, 60),
        ("commit", "journal"): (0.1, 5, 60),
        ("commit", "metrics"): (0.1, 5, 60),
    },
    gc=0,
    reshard=0,
    fill=0,
    verify=0,
    late=(0.1, 100),
    replicas=0.7,
    points=(400, 900),
    span=(0, 150),
)
_ALL = (*PROCESS, BEATS, *BENTS, *ALONE, *CHAINED, *BY_ID, WATERMARK)


def bent_of(seed: int, kind: str = "") -> Bent:
    """What a seed's schedule is bent to, unless a kind is asked for."""
    named = [bent for bent in _ALL if bent.name == kind]
    if kind and not named:
        raise ValueError(f"no kind {kind!r}: one of {sorted({bent.name for bent in _ALL})}")
    return named[0] if named else BENTS[seed % len(BENTS)]
