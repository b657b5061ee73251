"""Kinds of schedules that are asked for by name alone: other pipelines than one of two streams."""

from __future__ import annotations

from tests.simulator.bent import Bent

# Of pipelines of one stream.
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
    # The boundary moves on between an event and its copies; the other replica reads them later still, and fills run.
    Bent(name="ids-window", alone="id", gc=2, fill=1, replicas=1, lag=200, points=(300, 700), span=(-240, 100)),
    # A replica is down for minutes, while the other goes on and the boundary moves; it has read some events before.
    Bent(
        name="ids-outage",
        alone="id",
        disaster="outage",
        gc=2,
        fill=1,
        replicas=1,
        lag=20,
        late=(0.6, 300),
        points=(400, 800),
        span=(-240, 100),
    ),
    # A batch lies still from its landing on, while shards are added and the other replica claims in them.
    Bent(
        name="ids-resharded",
        alone="id",
        weak={("commit", "foreign"): (0.3, 60, 400)},
        restamped=200.0,
        reshard=1,
        gc=0,
        replicas=1,
        fill=0,
        verify=0,
        points=(200, 500),
        span=(-60, 60),
    ),
    Bent(name="ids-unheard", alone="id", unheard=0.1, gaps=True, gc=1, replicas=1, points=(200, 500), fill=0),
)

# Of two pipelines, of which the second reads the first one's output.
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
# Of a pipeline whose events are given up by the watermark.
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
# Of a join by a key and time: an event is decided once the primary stream has passed it.
MATCH = Bent(
    name="match",
    match=True,
    weak={("read", "primary"): (0.3, 5, 60), ("commit", "primary"): (0.3, 5, 60), ("commit", "registry"): (0.2, 5, 60)},
    gc=0,
    fill=0,
    verify=0,
    late=(0, 1),
    delay=5,
    points=(200, 600),
    span=(0, 60),
)
# Of two streams whose foreign events are known by their ids alone, and come again.
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
# Its output is processed key by key, the second time until a backup is put back.
PROCESS = (
    Bent(name="process", process=True, gc=0.3, reshard=0, points=(250, 600)),
    Bent(name="process-restore", process=True, disaster="restore-backup", gc=0, reshard=0, points=(300, 700)),
)
# The same, while batches of no records say that time passes.
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
# A process that wakes late has written the next batch's records ahead, and another has planned that batch otherwise.
OVERLAP = (
    Bent(
        name="overlap",
        budgets=True,
        most=1,
        weak={
            ("read", "registry"): (0.3, 5, 60),
            ("commit", "registry"): (0.3, 5, 60),
            ("commit", "journal"): (0.3, 2, 20),
            ("commit", "primary"): (0.2, 2, 20),
        },
        gc=0,
        reshard=0,
        fill=0,
        replicas=0.2,
        slow=0.8,
        points=(300, 700),
        span=(-240, -10),
    ),
    Bent(name="overlap-gc", budgets=True, most=1, gc=2, reshard=1, verify=0.5, points=(300, 600)),
    Bent(name="overlap-unheard", budgets=True, most=1, unheard=0.1, gaps=True, points=(300, 600), fill=0),
    Bent(name="overlap-restore", budgets=True, most=1, disaster="restore", gc=0, reshard=0, points=(300, 700)),
)
# Replicas read the same texts as other times, by files, or by rules of a zone, of their own.
LOCAL = tuple(
    Bent(
        name=kind,
        times=kind,
        weak={("read", table): (0.3, 5, 60), ("commit", table): (0.3, 5, 60)},
        gc=0.3,
        reshard=0.5,
        replicas=1,
        points=(200, 500),
    )
    for kind, table in (("forms", "shard_timeline"), ("zones", "journal"))
)
# The store is older than it was under processes that live on: a table, or all.
RESTORED = Bent(name="restore-live", disaster="restore-live", replicas=1, lag=40, points=(300, 600), span=(-240, -10))
NAMED = (*OVERLAP, *PROCESS, BEATS, *ALONE, *CHAINED, *BY_ID, *LOCAL, WATERMARK, MATCH, RESTORED)
