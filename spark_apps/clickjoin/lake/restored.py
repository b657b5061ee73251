"""Whether a lake's tables are still those that a process began with, or others have been put in their place."""

from __future__ import annotations

import json
import uuid
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clickjoin.lake.location import location
from clickjoin.model.errors import LakeError, LakeReplaced
from clickjoin.model.places import is_on_s3

if TYPE_CHECKING:
    from clickjoin.lake.tree import Tree

MARK = "_restored.json"
STAGING = ".restoring"  # beside a lake's folder: the lake that is about to take its place
_UNDER_WAY = "restore under way"


def mark(root: str) -> str:
    """What a restore or rebuild has left in a lake's folder: other after each; empty where there was none."""
    return (location(root).read(MARK) or b"").decode()


def leave_mark(root: str, what: str, now: datetime) -> None:
    """Have every process that works on the lake now commit nothing more: another table takes a table's place."""
    said = {"what": what, "at": now.isoformat(), "id": uuid.uuid4().hex}
    location(root).replace(MARK, json.dumps(said).encode())


def begin(root: Tree, aside: str, now: datetime, *, placing: bool) -> None:
    """Have nobody take a lake on S3 for one, while its tables are exchanged file by file.

    `aside`: where the lake before goes, or is gone; `placing`: it is all there, and what is here now is the restored
    one's.
    """
    said = {"what": _UNDER_WAY, "aside": aside, "placing": placing, "at": now.isoformat(), "id": uuid.uuid4().hex}
    root.write(MARK, json.dumps(said).encode())


def begun(root: str) -> dict[str, Any] | None:
    """What `begin` said of a restore that has not ended; None where none has begun."""
    said = mark(root)
    return json.loads(said) if _UNDER_WAY in said else None


def require_same(root: str, known: str) -> None:
    """Check that nothing was restored or rebuilt since a mark was read. Errors: LakeReplaced.

    To be asked between opening a table and committing to it: a handle from before a restore can commit nothing (see
    lake/restored_log.py), and one from after it is of tables that know nothing of this process's batch.
    """
    if (now := mark(root)) != known:
        raise LakeReplaced(
            f"{root}: a backup was restored, or a table rebuilt, while this process worked on it; nothing more of it "
            "is committed",
            remedy="Start it again: it goes on from what is there now",
        )
    if _UNDER_WAY in now:
        raise cut_short(root, f"{root}{STAGING}")


def cut_short(root: str, half: str) -> LakeError:
    """What to do where a restore was cut short between its two renames."""
    why = f"is not whole, and {half} is" if is_on_s3(root) else f"is not there, and {half} is"
    return LakeError(
        f"{root}: {why}: a restore was cut short",
        remedy="Run `clickjoin restore` again: it does the rest",
    )


def half_restored(root: str) -> str:
    """Where a restore that was cut short has left its copy of a lake that is not there; else empty."""
    if is_on_s3(root):
        return f"{root}{STAGING}" if begun(root) else ""
    staging = Path(f"{root}{STAGING}")
    return str(staging) if staging.is_dir() and not Path(root).exists() else ""
