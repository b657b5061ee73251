"""Taking a backup: a cut, a copy of what it names, and the manifest last. Joins, GC and all else may run meanwhile."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clickjoin.backup import manifest
from clickjoin.backup.copying import Vanished, alone, copy, digest, flush, folders, settle, written_to
from clickjoin.backup.manifest import PARTIAL, REMOVING, Manifest
from clickjoin.backup.places import require_apart
from clickjoin.backup.snapshot import Looks, cut, looks, named, under_way
from clickjoin.lake.snapshot_files import LOG, PinnedTables, data_files, log_files, require_version
from clickjoin.lake.table_format import formats
from clickjoin.model import failpoint
from clickjoin.model.errors import LakeError
from clickjoin.model.ids import EPOCH
from clickjoin.model.reporter import Reporter

if TYPE_CHECKING:
    from clickjoin.config import Pipeline

_TRIES, _WORKERS = 3, 4
_REPORTS = "_quality"  # pages that stand beside the tables
_ROOM = "Make room or fix its permissions, then call it again: what is there now is no backup, and it goes on from it"


@dataclass(frozen=True)
class Taken:
    """A backup that is whole: its folder, what it holds, and how many of its files and bytes had to be copied."""

    folder: Path
    manifest: Manifest
    copied: int
    copied_bytes: int
    removed: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        held = self.manifest
        return {
            "backup": str(self.folder), "at": held.at, "tables": dict(held.tables), "under_way": list(held.under_way),
            "files": len(held.files), "bytes": held.size, "copied": self.copied, "copied_bytes": self.copied_bytes,
            "removed": list(self.removed),
        }  # fmt: skip


@dataclass(frozen=True)
class _Wanted:
    """What a cut takes: data files (bytes by path), other files, versions, data files by table, batches under way."""

    looks: Looks
    data: dict[str, int]
    other: list[str]
    counts: dict[str, int]
    under_way: tuple[str, ...]


def take(pipeline: Pipeline, to: Path, report_line: Reporter, *, wait: float, keep: int | None = None) -> Taken:
    """Copy a lake as it stands at one moment to `to/<pipeline>/<time>`; of those so named keep the newest `keep`.

    Errors: ConfigError for a folder that will not do, CommitConflict where no quiet moment comes within `wait` seconds,
    LakeError for a lake that is damaged and a disk that is full.
    """
    require_apart(pipeline, to)
    formats(pipeline.root)  # of a newer lake, who knows what there is to copy
    home = to / pipeline.pipeline
    with written_to(home, _ROOM):
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    with written_to(home, _ROOM), alone(home / ".lock", "another backup"):
        return _take(pipeline, home, report_line, wait, keep)


def _take(pipeline: Pipeline, home: Path, report_line: Reporter, wait: float, keep: int | None) -> Taken:
    known, partial = _newest(home), home / PARTIAL
    partial.mkdir(mode=0o700, exist_ok=True)
    for _ in range(_TRIES):
        seen = cut(pipeline.root, wait)
        at, wanted = max(datetime.now(UTC), known.at + timedelta(microseconds=1)), _wanted(pipeline, seen)
        try:
            copier = _Copier(Path(pipeline.root), partial, known)
            files = copier.all(wanted)
        except Vanished as gone:
            _require_collected(pipeline.root, Path(str(gone)))
            report_line(f"{gone}: was collected while it was to be copied; beginning again, with what is there already")
            continue
        if _same_folders(pipeline.root, wanted.looks):
            versions = {name: seen.version for name, seen in wanted.looks.items()}
            whole = Manifest(pipeline.pipeline, pipeline.root, at.isoformat(), versions, wanted.counts,
                             wanted.under_way, files)  # fmt: skip
            folder = _finish(home, whole, at)
            return Taken(folder, whole, copier.copied, copier.bytes, _prune(home, keep, folder))
        report_line(f"{pipeline.root}: tables were put in the place of others meanwhile; beginning again")
    raise LakeError(
        f"{pipeline.root}: {_TRIES} times in a row files were collected before they could be copied",
        remedy="Keep files longer (retention.files) than a backup takes",
    )


def _wanted(pipeline: Pipeline, seen: Looks) -> _Wanted:
    root, versions = pipeline.root, {name: found.version for name, found in seen.items()}
    plans = under_way(PinnedTables(root, versions), pipeline.pipeline)
    wanted = _Wanted(seen, {}, _reports(root), {}, tuple(plan.token for plan in plans))
    for name, version in versions.items():
        older = {at for table, at in named(plans) if table == name}
        for at in older | {version}:
            wanted.data.update({f"{name}/{path}": size for path, size in data_files(root, name, at).items()})
        wanted.counts[name] = len(data_files(root, name, version))
        wanted.other.extend(f"{name}/{LOG}/{file}" for file in log_files(root, name, older | {version}))
    return wanted


def _reports(root: str) -> list[str]:
    return [str(place.relative_to(root)) for place in Path(root, _REPORTS).rglob("*") if place.is_file()]


@dataclass(frozen=True)
class _Known:
    """The backup before this one, whose data files need not be copied again."""

    folder: Path
    files: Mapping[str, tuple[int, str]]
    at: datetime


def _newest(home: Path) -> _Known:
    folder, at = (manifest.dated(home) or [(home, None)])[-1]
    return _Known(folder, manifest.read(folder).files, at) if at else _Known(home, {}, EPOCH)


class _Copier:
    """Copies files into a backup that is not whole yet; counts what it had to copy."""

    def __init__(self, root: Path, target: Path, known: _Known) -> None:
        self._root, self._target, self._known = root, target, known
        self.copied = self.bytes = 0

    def all(self, wanted: _Wanted) -> dict[str, tuple[int, str]]:
        """Copy all that is wanted, and remove all else; returns bytes and SHA-256 by path. Errors: Vanished."""
        paths = sorted([*wanted.data, *wanted.other])
        self._clear(wanted)
        folders(self._target, paths)
        with ThreadPoolExecutor(_WORKERS) as pool:
            found = dict(zip(paths, pool.map(lambda path: self._one(path, wanted.data.get(path)), paths), strict=True))
        settle(self._root, self._target)
        for name, seen in wanted.looks.items():
            require_version(str(self._target), name, seen.version, wanted.counts[name])
        return found

    def _clear(self, wanted: _Wanted) -> None:
        """Remove what an attempt that was cut short has left and this one does not want."""
        for place in [place for place in self._target.rglob("*") if place.is_file()]:
            if str(place.relative_to(self._target)) not in wanted.data:
                place.unlink()

    def _one(self, path: str, size: int | None) -> tuple[int, str]:
        target = self._target / path
        if size is None:  # a log's files and reports may be written again under the same name
            found = copy(self._root / path, target)
        elif target.is_file() and target.stat().st_size == size:
            return size, digest(target)
        elif self._known.files.get(path, (None, ""))[0] == size and self._linked(path):
            return self._known.files[path]
        else:
            found = copy(self._root / path, target)
            if found[0] != size:
                target.unlink()
                raise LakeError(
                    f"{self._root / path}: is {found[0]} bytes long, and its table's log says {size}",
                    remedy="Run `clickjoin verify --repair`, then take a backup",
                )
        failpoint.reach("backup-file")
        self.copied, self.bytes = self.copied + 1, self.bytes + found[0]
        return found

    def _linked(self, path: str) -> bool:
        """Whether the backup before this one holds the file, whole, and lends it a second name."""
        held = self._known.folder / path
        try:
            if held.stat().st_size == self._known.files[path][0]:
                os.link(held, self._target / path)
                return True
        except OSError:  # gone, or a file system without links
            pass
        return False


def _require_collected(root: str, gone: Path) -> None:
    """Check that the newest version of a table does without a file that is gone. Errors: LakeError."""
    name, _, path = str(gone.relative_to(root)).partition("/")
    seen = looks(root).get(name)
    if seen and path in data_files(root, name, seen.version):
        raise LakeError(
            f"{gone}: is gone, and version {seen.version} of its table names it",
            remedy="Run `clickjoin verify --repair`, then take a backup",
        )


def _same_folders(root: str, before: Looks) -> bool:
    now = looks(root)
    return all(name in now and now[name].log == seen.log for name, seen in before.items())


def _finish(home: Path, whole: Manifest, at: datetime) -> Path:
    whole.write(home / PARTIAL)
    flush(home / PARTIAL)
    failpoint.reach("backup-written")
    folder = home / manifest.name_of(at)
    (home / PARTIAL).rename(folder)
    flush(home)
    return folder


def _prune(home: Path, keep: int | None, taken: Path) -> tuple[str, ...]:
    """Remove all but the newest `keep` of the backups that are called as they were; nothing that others put there."""
    own = [folder for folder, at in manifest.dated(home) if at and folder.name == manifest.name_of(at)]
    old = [folder for folder in (own[:-keep] if keep else []) if folder != taken]
    for folder in old:
        left = folder.rename(folder.with_name(f"{folder.name}{REMOVING}"))  # first: from here on it is no backup
        (left / manifest.NAME).unlink()
    for folder in home.iterdir():  # also what an earlier removal has left that was cut short
        if manifest.is_left(folder.name) and folder.is_dir() and not folder.is_symlink():
            shutil.rmtree(folder)
    return tuple(folder.name for folder in old)
