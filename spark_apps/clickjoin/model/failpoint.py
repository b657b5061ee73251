"""Named points between the steps of a batch, GC and resharding, where a test can stop a process as a crash would.

With CLICKJOIN_FAULT=<point> in its environment a process ends there by SIGKILL; with <point>:<file> it sleeps there
until the file is gone, and so becomes a zombie of its own batch. In production the variable is not set, and this costs
nothing.
"""

from __future__ import annotations

import os
import signal
import time
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
    name, _, file = wanted.partition(":")
    if name == point:
        if not file:
            os.kill(os.getpid(), signal.SIGKILL)
        while Path(file).exists():
            time.sleep(0.05)
