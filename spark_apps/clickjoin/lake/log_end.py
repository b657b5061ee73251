"""Whether a log on a local disk ends at a version: seen by names, for a listing takes as long as there are entries."""

from __future__ import annotations

import json
from pathlib import Path

from clickjoin.lake.log_entries import POINTER


def entry_of(log: Path, version: int) -> Path:
    """Where the entry of a version lies."""
    return log / f"{version:020}.json"


def ends_at(log: Path, version: int) -> bool:
    """Whether a version is the newest one: no entry follows, and none has been cleaned up. Errors: OSError."""
    return not entry_of(log, version + 1).exists() and is_at_end(log, version)


def is_at_end(log: Path, version: int) -> bool:
    """Whether nothing shows that entries after a version have been: logs are cleaned from the oldest on.

    A checkpoint of a later version is named before any entry that it stands for is removed.
    """
    if not entry_of(log, version).exists():
        return False
    try:
        return int(json.loads((log / POINTER).read_bytes())["version"]) <= version
    except FileNotFoundError:
        return True
    except (ValueError, LookupError, TypeError):  # delta-rs does without
        return False
