"""Taking a backup: a cut, a copy of what it names, and the manifest last. Joins, GC and all else may run meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clickjoin.backup import manifest
from clickjoin.backup.manifest import PARTIAL, REMOVING, Manifest
from clickjoin.backup.places import Vanished, reach, require_apart, written_to
from clickjoin.backup.processed import unread
from clickjoin.backup.snapshot import Looks, all_looks, cut, named, under_way
from clickjoin.lake.restored import cut_short, half_restored
from clickjoin.lake.snapshot_files import LOG, PinnedTables, data_files, log_files, require_version
from clickjoin.lake.table_format import tables_of_format
from clickjoin.lake.tree import Found, Tree, tree
from clickjoin.model import failpoint
from clickjoin.model.errors import LakeError
from clickjoin.model.ids import EPOCH
from clickjoin.model.places import JOINED, declare_output, output_of
from clickjoin.model.reporter import Reporter

if TYPE_CHECKING:
    from clickjoin.config import Pipeline

_TRIES, _WORKERS, _REQUESTS = 3, 4, 16  # the last: files at a time where each is a request
_REPORTS = "_quality"  # pages that stand beside the tables
_ROOM = "Make room or fix its permissions, then call it again: what is there now is no backup, and it goes on from it"


@dataclass(frozen=True)
class BackupResult:
    """A backup that is whole: where it lies, what it holds, and how many of its files and bytes had to be copied."""

    place: str
    manifest: Manifest
    copied: int
    copied_bytes: int
    removed: tuple[str, ...]

    @property
    def folder(self) -> Path:
        """Its folder, where it lies on a disk."""
        return Path(self.place)

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        held = self.manifest
        return {
            "backup": self.place, "at": held.at, "tables": dict(held.tables), "under_way": list(held.under_way),
            "files": len(held.files), "bytes": held.size, "copied": self.copied, "copied_bytes": self.copied_bytes,
            "removed": list(self.removed),
        }  # fmt: skip


@dataclass(frozen=True)
class _Cut:
    """What a cut takes: data files (bytes by path), other files, versions, data files by table, batches under way."""

    looks: Looks
    data: dict[str, int]
    other: list[str]
    counts: dict[str, int]
    under_way: tuple[str, ...]


def take(
    pipeline: Pipeline, to: str | Path, report_line: Reporter, *, wait: float, keep: int | None = None
) -> BackupResult:
    """Copy a lake as it stands at one moment to `to/<pipeline>/<time>`; of those so named keep the newest `keep`.

    `to`: a folder of a disk, or a place on S3.

    Errors: ConfigError for a folder that will not do, CommitConflict where no quiet moment comes within `wait` seconds,
    LakeError for a lake that is damaged and a disk that is full.
    """
    require_apart(pipeline, str(to))
    reach(pipeline, str(to))
    if half := half_restored(pipeline.root):
        raise cut_short(pipeline.root, half)
    tables_of_format(pipeline.root)  # of another format, who knows what there is to copy
    home = tree(str(to)).at(pipeline.pipeline)
    with written_to(home.root, _ROOM):
        home.make()
    with written_to(home.root, _ROOM), home.alone(".lock", "another backup") as held:
        return _take(pipeline, held, report_line, wait, keep)


def _take(pipeline: Pipeline, home: Tree, report_line: Reporter, wait: float, keep: int | None) -> BackupResult:
    known, partial = _newest(home), home.at(PARTIAL)
    partial.make()
    declare_output(partial.root, output_of(pipeline.root))
    for _ in range(_TRIES):
        seen = cut(pipeline.root, wait)
        at, wanted = max(datetime.now(UTC), known.at + timedelta(microseconds=1)), _wanted(pipeline, seen)
        try:
            copier = _Copier(tree(pipeline.root), partial, known)
            files = copier.all(wanted)
        except Vanished as gone:
            _require_collected(pipeline.root, str(gone))
            report_line(
                f"{pipeline.root}/{gone}: was collected before it was copied; beginning again, with what is there"
            )
            continue
        if _same_folders(pipeline.root, wanted.looks):
            versions = {name: seen.version for name, seen in wanted.looks.items()}
            whole = Manifest(pipeline.pipeline, pipeline.root, at.isoformat(), versions, wanted.counts,
                             wanted.under_way, files)  # fmt: skip
            name = _finish(home, whole, at)
            return BackupResult(home.at(name).root, whole, copier.copied, copier.bytes, _prune(home, keep, name))
        report_line(f"{pipeline.root}: tables were put in the place of others meanwhile; beginning again")
    raise LakeError(
        f"{pipeline.root}: {_TRIES} times in a row files were collected before they could be copied",
        remedy="Keep files longer (retention.files) than a backup takes",
    )


def _wanted(pipeline: Pipeline, seen: Looks) -> _Cut:
    root, versions = pipeline.root, {name: found.version for name, found in seen.items()}
    plans = under_way(PinnedTables(root, versions), pipeline.pipeline)
    rest, output = unread(root, pipeline.pipeline, versions), output_of(root)
    tokens, data = (*(plan.token for plan in plans), *rest.batches), rest.files.items()
    wanted = _Cut(seen, {f"{output}/{path}": size for path, size in data}, [*tree(root).files(_REPORTS)], {}, tokens)
    older_ones = [*named(plans), *((JOINED, at) for at in rest.versions)]
    for name, version in versions.items():
        older = {at for table, at in older_ones if table == name}
        folder = output if name == JOINED else name
        for at in older | {version}:
            wanted.data.update({f"{folder}/{path}": size for path, size in data_files(root, name, at).items()})
        wanted.counts[name] = len(data_files(root, name, version))
        wanted.other.extend(f"{folder}/{LOG}/{file}" for file in log_files(root, name, older | {version}))
    wanted.other.extend({f"{output}/{path}" for path in rest.log} - set(wanted.other))
    return wanted


@dataclass(frozen=True)
class _Earlier:
    """The backup before this one, whose data files need not be copied again."""

    folder: Tree
    files: Mapping[str, Found]
    at: datetime


def _newest(home: Tree) -> _Earlier:
    folder, at = (manifest.dated(home) or [(home, None)])[-1]
    return _Earlier(folder, manifest.read(folder).files, at) if at else _Earlier(home, {}, EPOCH)


class _Copier:
    """Copies files into a backup that is not whole yet; counts what it had to copy from the lake."""

    def __init__(self, root: Tree, target: Tree, known: _Earlier) -> None:
        self._root, self._target, self._known = root, target, known
        self._there: dict[str, int] = {}
        self.copied = self.bytes = 0

    def all(self, wanted: _Cut) -> dict[str, Found]:
        """Copy all that is wanted, and remove all else; returns bytes and SHA-256 by path. Errors: Vanished."""
        paths = sorted([*wanted.data, *wanted.other])
        self._clear(wanted)
        self._target.prepare(paths)
        with ThreadPoolExecutor(_WORKERS if self._target.renames_at_once else _REQUESTS) as pool:
            found = dict(zip(paths, pool.map(lambda path: self._one(path, wanted.data.get(path)), paths), strict=True))
        self._target.settle(self._root)
        looks = wanted.looks
        with ThreadPoolExecutor(_WORKERS) as pool:
            list(pool.map(lambda n: require_version(self._target.root, n, looks[n].version, wanted.counts[n]), looks))
        return found

    def _clear(self, wanted: _Cut) -> None:
        """Remove what an attempt that was cut short has left and this one does not want."""
        found = self._target.files()
        self._there = {path: size for path, size in found.items() if path in wanted.data}
        self._target.remove(path for path in found if path not in self._there)

    def _one(self, path: str, size: int | None) -> Found:
        if size is None:  # a log's files and reports may be written again under the same name
            found = self._copy(path)
        elif self._there.get(path) == size:
            return self._target.digest(path)
        elif self._known.files.get(path, (None, ""))[0] == size and self._lent(path):
            return self._known.files[path]
        else:
            found = self._copy(path)
            if found[0] != size:
                self._target.remove([path])
                raise LakeError(
                    f"{self._root.root}/{path}: is {found[0]} bytes long, and its table's log says {size}",
                    remedy="Run `clickjoin verify --repair`, then take a backup",
                )
        failpoint.reach("backup-file")
        self.copied, self.bytes = self.copied + 1, self.bytes + found[0]
        return found

    def _copy(self, path: str) -> Found:
        try:
            return self._target.copy(path, self._root)
        except FileNotFoundError as error:
            raise Vanished(path) from error

    def _lent(self, path: str) -> bool:
        """Whether the backup before this one holds the file, whole, and it could be had from there unread."""
        held = self._known.folder
        try:
            return held.size(path) == self._known.files[path][0] and self._target.lend(path, held)
        except FileNotFoundError:
            return False


def _require_collected(root: str, gone: str) -> None:
    """Check that the newest version of a table does without a file that is gone. Errors: LakeError."""
    for name, seen in all_looks(root).items():
        folder = f"{output_of(root) if name == JOINED else name}/"
        if not gone.startswith(folder) or gone.removeprefix(folder) not in data_files(root, name, seen.version):
            continue
        raise LakeError(
            f"{root}/{gone}: is gone, and version {seen.version} of its table names it",
            remedy="Run `clickjoin verify --repair`, then take a backup",
        )


def _same_folders(root: str, before: Looks) -> bool:
    now = all_looks(root)
    return all(name in now and now[name].log == seen.log for name, seen in before.items())


def _finish(home: Tree, whole: Manifest, at: datetime) -> str:
    partial, name = home.at(PARTIAL), manifest.name_of(at)
    whole.write(partial)
    failpoint.reach("backup-written")
    partial.rename(home.at(name), last=manifest.NAME)
    return name


def _prune(home: Tree, keep: int | None, taken: str) -> tuple[str, ...]:
    """Remove all but the newest `keep` of the backups that are called as they were; nothing that others put there."""
    own = [folder for folder, at in manifest.dated(home) if at and folder.name == manifest.name_of(at)]
    old = [folder for folder in (own[:-keep] if keep else []) if folder.name != taken]
    for folder in old:
        if home.renames_at_once:
            folder.rename(folder.beside(REMOVING))  # first: from here on it is no backup
            folder.beside(REMOVING).remove([manifest.NAME])
        else:
            folder.discard(first=manifest.NAME)
    for folder in manifest.left(home):  # also what an earlier removal has left that was cut short
        folder.discard()
    return tuple(folder.name for folder in old)
