"""What schedules are bent to: where processes like to sleep, which jobs run, and what goes wrong besides."""

from __future__ import annotations

from tests.simulator.bent import Bent
from tests.simulator.kinds import NAMED

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


_ALL = (*BENTS, *NAMED)


def bent_of(seed: int, kind: str = "") -> Bent:
    """What a seed's schedule is bent to, unless a kind is asked for."""
    named = [bent for bent in _ALL if bent.name == kind]
    if kind and not named:
        raise ValueError(f"no kind {kind!r}: one of {sorted({bent.name for bent in _ALL})}")
    return named[0] if named else BENTS[seed % len(BENTS)]
