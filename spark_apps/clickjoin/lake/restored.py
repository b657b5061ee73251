"""Whether the lake in a folder is still the one that a process began with, or a backup has been put in its place."""

from __future__ import annotations

from pathlib import Path

from clickjoin.errors import LakeReplaced

MARK = "_restored.json"
STAGING = ".restoring"  # beside a lake's folder: the lake that is about to take its place


def mark(root: str) -> str:
    """What a restore has left in a lake's folder: other after each; empty where there was none."""
    try:
        return Path(root, MARK).read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return ""


def require_same(root: str, known: str) -> None:
    """Check that no backup has been restored since a mark was read. Errors: LakeReplaced.

    To be asked between opening a table and committing to it: a handle from before a restore can commit nothing (see
    lake/relog.py), and one from after it is of tables that know nothing of this process's batch.
    """
    if mark(root) != known:
        raise LakeReplaced(
            f"{root}: a backup was restored while this process worked on it; nothing more of it is committed",
            remedy="Start it again: it goes on from what was restored",
        )


def half_restored(root: str) -> str:
    """Where a restore that was cut short has left its copy of a lake; empty if there is none."""
    staging = Path(f"{root}{STAGING}")
    return str(staging) if staging.is_dir() else ""
