"""Named points between the steps of a batch, GC and resharding, where a test can stop a process as a crash would.

With CLICKJOIN_FAULT=<point> in its environment a process ends there by SIGKILL; with <point>:<file> it sleeps there
until the file is gone, and so becomes a zombie of its own batch. In production the variable is not set, and this costs
nothing.

Every commit of every table is between two points, `before-commit:TABLE` and `after-commit:TABLE`.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

POINTS = ("planned", "landed", "looked-up", "claimed", "published", "set-aside", "settled")
GC_POINTS = ("boundary-moved", "stragglers-handled", "claims-dropped")
RESHARD_POINTS = ("proposed", "fenced")
BACKUP_POINTS = ("backup-file", "backup-written")
PROCESS_POINTS = ("process-planned", "process-late", "process-state", "process-published", "process-settled")
RESTORE_POINTS = ("restore-copied", "restore-put-aside", "restore-made")


def reach(point: str) -> None:
    """Stop or sleep here, if the environment says so."""
    wanted = os.environ.get("CLICKJOIN_FAULT")
    if not wanted:
        return
    if wanted == point:
        os.kill(os.getpid(), signal.SIGKILL)
    if wanted.startswith(f"{point}:"):
        while Path(wanted.removeprefix(f"{point}:")).exists():
            time.sleep(0.05)


@contextmanager
def around_commit(place: str) -> Iterator[None]:
    """Two points around a commit to a table, of which one that fails reaches the first. `place`: its name or URI."""
    table = place.rstrip("/").rpartition("/")[2]
    reach(f"before-commit:{table}")
    yield
    reach(f"after-commit:{table}")
