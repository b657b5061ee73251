"""What a backup holds. It is written last: a folder without one is no backup."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any

from clickjoin.lake.tree import Tree, tree
from clickjoin.model.errors import ConfigError, LakeError
from clickjoin.model.ids import EPOCH

NAME = "manifest.json"
PARTIAL = "partial"
REMOVING = ".removing"  # ends the name of a backup whose removal has begun
_TIME = r"\d{8}T\d{6}\.\d{6}Z"
_LEFT = re.compile(rf"{PARTIAL}|{_TIME}{re.escape(REMOVING)}")


@dataclass(frozen=True)
class Manifest:
    """A backup: when (ISO 8601, UTC), of which tables at which versions, and each file's bytes and SHA-256 by path.

    `data`: how many data files each table names. `under_way`: tokens of the batches that were under way.
    """

    pipeline: str
    root: str
    at: str
    tables: Mapping[str, int]
    data: Mapping[str, int]
    under_way: tuple[str, ...]
    files: Mapping[str, tuple[int, str]]

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(size for size, _ in self.files.values())

    def write(self, folder: Tree) -> None:
        """Write it into a backup's folder: whole, flushed to disk, or not at all."""
        folder.write(NAME, json.dumps(asdict(self), indent=1).encode())


def read(folder: Tree | Path) -> Manifest:
    """The manifest of a backup. Errors: LakeError where it is none that this version wrote."""
    folder = _tree(folder)
    place = f"{folder.root}/{NAME}"
    try:
        raw: dict[str, Any] = json.loads((folder.read(NAME) or b"").decode())
        raw["files"] = {path: (int(size), str(digest)) for path, (size, digest) in raw["files"].items()}
        found = Manifest(**raw | {"under_way": tuple(raw["under_way"])})
        if datetime.fromisoformat(found.at).tzinfo is None:
            raise ValueError("its time has no zone")
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise LakeError(f"{place}: cannot be read ({error})", remedy="Restore another backup (--at)") from error
    if wrong := [
        path for path in found.files if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts
    ]:
        raise LakeError(f"{place}: names {wrong[0]}, outside of the backup", remedy="Restore another backup (--at)")
    return found


def name_of(at: datetime) -> str:
    """The name that a backup of this moment is given."""
    return f"{at:%Y%m%dT%H%M%S.%fZ}"


def is_left(name: str) -> bool:
    """Whether a folder's name is that of a backup that was not finished, or whose removal was not."""
    return bool(_LEFT.fullmatch(name))


def left(home: Tree) -> list[Tree]:
    """Folders of backups that were not finished, or whose removal was not.

    On S3, where a folder gets its name file by file, also those named by a time that have no manifest.
    """
    found = [folder for folder in map(home.at, home.children()) if not folder.is_link()]
    return [
        folder
        for folder in found
        if is_left(folder.name)
        or (not home.renames_at_once and re.fullmatch(_TIME, folder.name) and folder.size(NAME) is None)
    ]


def dated(home: Tree | Path) -> list[tuple[Tree, datetime | None]]:
    """Folders of the backups of one pipeline, whatever they are called, with their manifests' times, oldest first.

    Those whose manifest cannot be read (None) come before all others. A link to a backup is no backup.
    """
    found = [(place, _at(place)) for place in _whole(_tree(home)) if not place.is_link()]
    return sorted(found, key=lambda one: (one[1] is not None, one[1] or EPOCH, one[0].name))


def backups(home: Path) -> list[Path]:
    """Folders of the backups of one pipeline on a disk, in the order of `dated`."""
    return [Path(place.root) for place, _ in dated(home)]


def find(folder: Tree, pipeline: str, at: str) -> tuple[Tree, Manifest]:
    """A pipeline's backup in a folder: the newest, or the one called `at`; the folder may be a backup itself.

    `at` may also name a link to one. Errors: ConfigError where there is none, LakeError for a manifest that cannot be
    read: of the newest only where no other can be.
    """
    if not at and _is_whole(folder):
        return folder, _of(folder, pipeline)
    home = folder.at(pipeline)
    dates = dated(home)
    known = [place.resolved() for place in _whole(home) if place.name == at] if at else [place for place, _ in dates]
    if not known:
        names = ", ".join(place.name for place, _ in dates[-5:])
        begun = "; one was begun and never finished" if home.at(PARTIAL).exists() else ""
        raise ConfigError(
            f"{folder.root}: holds no backup {f'{at} ' if at else ''}of pipeline {pipeline}{begun}",
            remedy=f"Name one of {names}" if names else "Give the folder that `clickjoin backup --to` was given",
        )
    return known[-1], _of(known[-1], pipeline)


def _tree(place: Tree | Path) -> Tree:
    return tree(str(place)) if isinstance(place, Path) else place


def _whole(home: Tree) -> list[Tree]:
    return [place for place in map(home.at, home.children()) if _is_whole(place)]


def _is_whole(folder: Tree) -> bool:
    return folder.size(NAME) is not None and not is_left(folder.resolved().name)


def _at(folder: Tree) -> datetime | None:
    try:
        return datetime.fromisoformat(read(folder).at)
    except LakeError:
        return None


def _of(folder: Tree, pipeline: str) -> Manifest:
    found = read(folder)
    if found.pipeline != pipeline:
        raise ConfigError(
            f"{folder.root}: is a backup of pipeline {found.pipeline}, not of {pipeline}",
            remedy="Give this pipeline's own backup, or that one's file with --config",
        )
    return found
