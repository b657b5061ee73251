"""Putting a backup in a lake's place: checked before anything is touched, one rename at the end, nothing deleted.

The lake is made beside the one that is there, which is then given another name. Cut short anywhere it leaves the old
lake as it was, or none: then no process begins an empty one (see setup.py), and another restore does the rest.

On S3 a rename is a copy of each file. So the lake is first marked as one that is being restored, which nobody reads or
writes as a lake, and the mark that ends this is the last file that is written.
"""

from __future__ import annotations

import json
import os
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clickjoin.backup.manifest import Manifest, dated, find
from clickjoin.backup.places import reach, written_to
from clickjoin.backup.snapshot import under_way
from clickjoin.lake.location import location
from clickjoin.lake.restored import MARK, STAGING, begin, begun
from clickjoin.lake.restored_log import UNKNOWN, continue_after
from clickjoin.lake.snapshot_files import LOG, PinnedTables, look, require_version
from clickjoin.lake.tree import Found, Tree, tree
from clickjoin.model import failpoint
from clickjoin.model.errors import BatchError, ClickjoinError, LakeError
from clickjoin.model.ids import MICROS
from clickjoin.model.reporter import Reporter
from clickjoin.schemas import ALL
from clickjoin.schemas.process import FOLDER, PROCESS

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.model.batch_plan import BatchPlan

_COMMITTED = timedelta(seconds=60)
_STOP = (
    "Stop every run, drain, process and gc of the pipeline, and pause its DAGs in Airflow (airflow dags pause "
    "--treat-dag-id-as-regex 'clickjoin_.*__{}'); where nothing runs any more, `clickjoin drain` finishes it, or "
    "--force goes on"
)


def require_idle(pipeline: Pipeline, now: datetime) -> None:
    """Check that nothing was committed within a minute, and that every batch is settled. Errors: BatchError.

    However old a plan is, a process that was paused may go on with it. A lake that cannot be read says nothing: it is
    what one restores for.
    """
    remedy = _STOP.format(pipeline.pipeline)
    for name in (*(table.name for table in ALL), *(f"{FOLDER}/{table.name}" for table in PROCESS)):
        age = now - _last_commit(pipeline.root, name)
        if age < _COMMITTED:
            raise BatchError(f"{pipeline.root}/{name}: was committed to {age.total_seconds():.0f} s ago", remedy=remedy)
    try:
        plans = [plan for root in (pipeline.root, f"{pipeline.root}/{FOLDER}") for plan in _under_way(pipeline, root)]
    except ClickjoinError:
        return
    if plans:
        tokens = ", ".join(plan.token for plan in plans)
        raise BatchError(f"{pipeline.root}: batch {tokens} is under way", remedy=remedy)


def _under_way(pipeline: Pipeline, root: str) -> list[BatchPlan]:
    seen = look(root, "journal")
    return under_way(PinnedTables(root, {"journal": seen.version}), pipeline.pipeline) if seen else []


def _last_commit(root: str, name: str) -> datetime:
    seen = look(root, name)
    file = location(f"{root}/{name}/{LOG}").stored(f"{seen.version:020}.json") if seen else None
    return datetime.fromtimestamp(file.at if file else 0, UTC)


_WORKERS, _REQUESTS = 4, 16  # the last: files at a time where each is a request
_ROOM = "The lake is as it was; make room or fix permissions beside it, and restore again"
_AGAIN = "Restore again: until then nothing is joined, so nothing can be joined twice"
_GAP_TRIES = 20


@dataclass(frozen=True)
class RestoreResult:
    """What was restored, or would be: where from, its manifest, where the old lake is now, versions by table."""

    place: str
    manifest: Manifest
    aside: str | None
    versions: dict[str, int]

    @property
    def backup(self) -> Path:
        """The backup's folder, where it lies on a disk."""
        return Path(self.place)

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        held = self.manifest
        return {
            "backup": self.place, "at": held.at, "under_way": list(held.under_way), "files": len(held.files),
            "bytes": held.size, "aside": self.aside, "versions": self.versions,
        }  # fmt: skip


def restore(
    pipeline: Pipeline, folder: str | Path, at: str, report_line: Reporter, *, force: bool = False,
    dry_run: bool = False,
) -> RestoreResult:  # fmt: skip
    """Put the newest backup in a folder, or the one called `at`, in the lake's place; with `dry_run` only check it.

    Errors: ConfigError where there is no such backup, LakeError for one that is damaged, BatchError where a process
    works on the lake as far as is known (unless `force`).
    """
    reach(pipeline, str(folder))
    place, held = find(tree(str(folder)), pipeline.pipeline, at)
    if not at and place.root != str(folder):
        _say_passed_over(place.parent, report_line)
    if dry_run:
        _check(place, held)
        return RestoreResult(place.root, held, None, dict(held.tables))
    lake = tree(pipeline.root)
    with written_to(lake.root, _ROOM):
        lake.parent.make(shared=True)
    with written_to(lake.root, _ROOM), lake.parent.alone(f".{lake.name}.restore.lock", "another restore") as parent:
        if not force:
            require_idle(pipeline, datetime.now(UTC))
        root = parent.at(lake.name)
        staging = root.beside(STAGING)
        _stage(place, held, staging)
        failpoint.reach("restore-copied")
        return _swap(root, staging, RestoreResult(place.root, held, None, {}), report_line)


def _say_passed_over(home: Tree, report_line: Reporter) -> None:
    """Name the backups whose age nobody can tell: one of them may be newer than the one that was chosen."""
    for place, at in dated(home):
        if at is None:
            report_line(f"{place.root}: its manifest cannot be read; it was passed over")


def _check(place: Tree, held: Manifest) -> None:
    def one(path: str) -> None:
        try:
            found = place.digest(path)
        except OSError as error:
            raise _damaged(place, path, error.strerror or str(error)) from error
        _require(place, path, found, held.files[path])

    with ThreadPoolExecutor(_WORKERS) as pool:
        list(pool.map(one, held.files))


def _stage(place: Tree, held: Manifest, staging: Tree) -> None:
    """Copy a backup to beside the lake, each file checked on the way."""
    if staging.exists():  # of a restore that was cut short: a copy, and nothing else
        staging.discard()
    staging.make()
    staging.prepare(held.files)

    def one(path: str) -> None:
        try:
            found = staging.copy(path, place)
        except FileNotFoundError as error:
            raise _damaged(place, path, "it is gone") from error
        _require(place, path, found, held.files[path])

    with ThreadPoolExecutor(_WORKERS if staging.renames_at_once else _REQUESTS) as pool:
        list(pool.map(one, held.files))
    staging.settle(place)
    with ThreadPoolExecutor(_WORKERS) as pool:
        list(
            pool.map(lambda name: require_version(staging.root, name, held.tables[name], held.data[name]), held.tables)
        )


def _require(place: Tree, path: str, found: Found, wanted: Found) -> None:
    if found != wanted:
        raise _damaged(
            place, path, f"{found[0]} bytes, SHA-256 {found[1][:12]}…; its manifest says {wanted[0]}, {wanted[1][:12]}…"
        )


def _damaged(place: Tree, path: str, why: str) -> LakeError:
    return LakeError(
        f"{place.root}/{path}: the backup is damaged ({why})", remedy="The lake is as it was; restore another (--at)"
    )


def _swap(root: Tree, staging: Tree, done: RestoreResult, report_line: Reporter) -> RestoreResult:
    now = datetime.now(UTC)
    with written_to(root.root, _AGAIN):
        aside = _put_aside(root, now) if root.renames_at_once else _move_aside(root, now)
        if aside:
            report_line(f"{root.root}: put aside as {aside}")
        failpoint.reach("restore-put-aside")
        # After it was put aside: from now on no commit can lengthen its logs.
        at, held, asides = int(now.timestamp() * MICROS), done.manifest.tables, _asides(root)
        with ThreadPoolExecutor(_WORKERS) as pool:
            after = pool.map(
                lambda name: continue_after(staging.root, name, _newest(asides, name, held[name]), at), held
            )
            versions = dict(zip(held, after, strict=True))
        note = {"backup": done.place, "taken": done.manifest.at, "restored": now.isoformat(), "id": uuid.uuid4().hex}
        staging.write(MARK, json.dumps(note).encode())
        if root.renames_at_once:
            os.sync()
        failpoint.reach("restore-made")
        _into_place(root, staging)
    return RestoreResult(done.place, done.manifest, aside or next(reversed(_asides(root)), None), versions)


def _put_aside(root: Tree, now: datetime) -> str | None:
    if not root.exists():
        return None
    aside = root.beside(_name_aside(now))
    root.rename(aside)
    return aside.root


def _name_aside(now: datetime) -> str:
    return f".put-aside-{now:%Y%m%dT%H%M%S.%fZ}"


def _move_aside(root: Tree, now: datetime) -> str | None:
    """The same file by file, under the mark; a restore that was cut short is gone on with.

    Where that had put all of it aside, what is in the lake's place now is a part of its copy, and is removed.
    """
    said = begun(root.root)
    aside = root.parent.at(said["aside"].rpartition("/")[2]) if said else root.beside(_name_aside(now))
    if not said:
        if old := root.read(MARK):
            aside.write(MARK, old)
        begin(root, aside.root, now, placing=False)
        failpoint.reach("restore-begun")
    if said and said["placing"]:
        root.remove(path for path in root.files() if path != MARK)
    else:
        root.rename(aside, but=MARK)
        failpoint.reach("restore-moved")
        begin(root, aside.root, now, placing=True)
    return aside.root if aside.exists() else None


def _newest(asides: list[str], name: str, held: int) -> int:
    """The newest version that a table ever had in this place, from all lakes that were put aside."""
    known = [seen.version for lake in asides if (seen := look(lake, name))]
    return max(known, default=held + UNKNOWN)


def _asides(root: Tree) -> list[str]:
    names = [name for name in root.parent.children() if name.startswith(f"{root.name}.put-aside-")]
    return [root.parent.at(name).root for name in names]


def _into_place(root: Tree, staging: Tree) -> None:
    """The one step that makes the restored lake the pipeline's."""
    for _ in range(_GAP_TRIES):
        try:
            staging.rename(root, last=MARK)
            return
        except OSError:  # a process that slept has made the folder again for a file of its own
            if not root.renames_at_once or _put_aside(root, datetime.now(UTC)) is None:
                raise
    raise LakeError(f"{root.root}: is made again and again by another process", remedy=f"Stop it. {_AGAIN}")
