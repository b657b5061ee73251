"""Folders that a benchmark works in."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

_TRIES, _PAUSE = 20, 0.25


def remove(folder: Path) -> None:
    """Remove one, although a Java that was just asked to stop may still write there. Errors: OSError if it goes on."""
    for _ in range(_TRIES):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(_PAUSE)
    shutil.rmtree(folder)
