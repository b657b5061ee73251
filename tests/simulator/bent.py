"""What a schedule can be bent to."""

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
    disaster: str = ""  # restore, restore-pending, power, outage: see disasters.py
    span: tuple[float, float] | None = None  # event times, in seconds from the start
    alone: str = ""  # time, id: of one stream, whose events are known by id and time, or by id alone
    restamped: float = 55.0  # seconds, at most, between an event's time and a copy's, where ids alone are names
    by_id: bool = False  # two streams, and foreign events are known by their ids alone
    absent: bool = False  # what a stream has passed without it is given up, long before its attempts are spent
    match: bool = False  # foreign events name a key, and are joined to its last query before them
    chain: bool = False  # a second pipeline joins a third stream to the output of the first
    process: bool = False  # processes give the output's events to a processor, key by key
    beats: bool = False  # batches of no records say that time passes
    times: str = ""  # forms, zones: by what replicas read the same texts differently (local_times.py)
    budgets: bool = False  # each process of a replica takes another number of events at most, and works ahead
