"""Putting a backup in a lake's place: checked before anything is touched, one rename at the end, nothing deleted.

The lake is made beside the one that is there, which is then given another name. Cut short anywhere it leaves the old
lake as it was, or none: then no process begins an empty one (see setup.py), and another restore does the rest.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clickjoin.backup.busy import require_idle
from clickjoin.backup.copying import Vanished, alone, copy, digest, flush, folders, settle, written_to
from clickjoin.backup.manifest import Manifest, dated, find
from clickjoin.lake.restored import MARK, STAGING
from clickjoin.lake.restored_log import UNKNOWN, continue_after
from clickjoin.lake.snapshot_files import look, require_version
from clickjoin.model import failpoint
from clickjoin.model.errors import LakeError
from clickjoin.model.ids import MICROS
from clickjoin.model.reporter import Reporter

if TYPE_CHECKING:
    from clickjoin.config import Pipeline

_WORKERS = 4
_ROOM = "The lake is as it was; make room or fix permissions beside it, and restore again"
_AGAIN = "Restore again: until then nothing is joined, so nothing can be joined twice"
_GAP_TRIES = 20


@dataclass(frozen=True)
class Restored:
    """What was restored, or would be: the backup, its manifest, where the old lake is now, versions by table."""

    backup: Path
    manifest: Manifest
    aside: str | None
    versions: dict[str, int]

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        held = self.manifest
        return {
            "backup": str(self.backup), "at": held.at, "under_way": list(held.under_way), "files": len(held.files),
            "bytes": held.size, "aside": self.aside, "versions": self.versions,
        }  # fmt: skip


def restore(
    pipeline: Pipeline,
    folder: Path,
    at: str,
    report_line: Reporter,
    *,
    force: bool = False,
    dry_run: bool = False,
) -> Restored:
    """Put the newest backup in a folder, or the one called `at`, in the lake's place; with `dry_run` only check it.

    Errors: ConfigError where there is no such backup, LakeError for one that is damaged, BatchError where a process
    works on the lake as far as is known (unless `force`).
    """
    place, held = find(folder, pipeline.pipeline, at)
    if not at and place != folder:
        _say_passed_over(place.parent, report_line)
    if dry_run:
        _check(place, held)
        return Restored(place, held, None, dict(held.tables))
    root = Path(pipeline.root)
    with written_to(root, _ROOM):
        root.parent.mkdir(parents=True, exist_ok=True)
    with written_to(root, _ROOM), alone(root.with_name(f".{root.name}.restore.lock"), "another restore"):
        if not force:
            require_idle(pipeline, datetime.now(UTC))
        staging = Path(f"{root}{STAGING}")
        _stage(place, held, staging)
        failpoint.reach("restore-copied")
        return _swap(root, staging, Restored(place, held, None, {}), report_line)


def _say_passed_over(home: Path, report_line: Reporter) -> None:
    """Name the backups whose age nobody can tell: one of them may be newer than the one that was chosen."""
    for place, at in dated(home):
        if at is None:
            report_line(f"{place}: its manifest cannot be read; it was passed over")


def _check(place: Path, held: Manifest) -> None:
    def one(path: str) -> None:
        try:
            found = (place / path).stat().st_size, digest(place / path)
        except OSError as error:
            raise _damaged(place / path, error.strerror or str(error)) from error
        _require(place / path, found, held.files[path])

    with ThreadPoolExecutor(_WORKERS) as pool:
        list(pool.map(one, held.files))


def _stage(place: Path, held: Manifest, staging: Path) -> None:
    """Copy a backup to beside the lake, each file checked on the way."""
    if staging.exists():  # of a restore that was cut short: a copy, and nothing else
        shutil.rmtree(staging)
    staging.mkdir(mode=0o700)
    folders(staging, held.files)

    def one(path: str) -> None:
        try:
            found = copy(place / path, staging / path)
        except Vanished as error:
            raise _damaged(place / path, "it is gone") from error
        _require(place / path, found, held.files[path])

    with ThreadPoolExecutor(_WORKERS) as pool:
        list(pool.map(one, held.files))
    settle(place, staging)
    for name, version in held.tables.items():
        require_version(str(staging), name, version, held.data[name])


def _require(file: Path, found: tuple[int, str], wanted: tuple[int, str]) -> None:
    if found != wanted:
        raise _damaged(
            file, f"{found[0]} bytes, SHA-256 {found[1][:12]}…; its manifest says {wanted[0]}, {wanted[1][:12]}…"
        )


def _damaged(file: Path, why: str) -> LakeError:
    return LakeError(f"{file}: the backup is damaged ({why})", remedy="The lake is as it was; restore another (--at)")


def _swap(root: Path, staging: Path, done: Restored, report_line: Reporter) -> Restored:
    now = datetime.now(UTC)
    aside = _put_aside(root, now)
    if aside:
        report_line(f"{root}: put aside as {aside}")
    with written_to(root, _AGAIN):
        flush(root.parent)
        failpoint.reach("restore-put-aside")
        # After it was put aside: from now on no commit can lengthen its logs.
        versions = {
            name: continue_after(str(staging), name, _newest(root, name, held), int(now.timestamp() * MICROS))
            for name, held in done.manifest.tables.items()
        }
        note = {
            "backup": str(done.backup),
            "taken": done.manifest.at,
            "restored": now.isoformat(),
            "id": uuid.uuid4().hex,
        }
        (staging / MARK).write_text(json.dumps(note), encoding="utf-8")
        os.sync()
        failpoint.reach("restore-made")
        _into_place(root, staging)
    return Restored(done.backup, done.manifest, aside or next(reversed(_asides(root)), None), versions)


def _put_aside(root: Path, now: datetime) -> str | None:
    if not root.exists():
        return None
    aside = f"{root}.put-aside-{now:%Y%m%dT%H%M%S.%fZ}"
    root.rename(aside)
    return aside


def _newest(root: Path, name: str, held: int) -> int:
    """The newest version that a table ever had in this place, from all lakes that were put aside."""
    known = [seen.version for lake in _asides(root) if (seen := look(lake, name))]
    return max(known, default=held + UNKNOWN)


def _asides(root: Path) -> list[str]:
    return sorted(map(str, root.parent.glob(f"{root.name}.put-aside-*")))


def _into_place(root: Path, staging: Path) -> None:
    """The one step that makes the restored lake the pipeline's."""
    for _ in range(_GAP_TRIES):
        try:
            staging.rename(root)
            flush(root.parent)
            return
        except OSError:  # a process that slept has made the folder again for a file of its own
            if _put_aside(root, datetime.now(UTC)) is None:
                raise
    raise LakeError(f"{root}: is made again and again by another process", remedy=f"Stop it. {_AGAIN}")
