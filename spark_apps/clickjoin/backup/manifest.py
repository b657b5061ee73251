"""What a backup holds. It is written last: a folder without one is no backup."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any

from clickjoin.model.errors import ConfigError, LakeError
from clickjoin.model.ids import EPOCH

NAME = "manifest.json"
PARTIAL = "partial"
REMOVING = ".removing"  # ends the name of a backup whose removal has begun
_LEFT = re.compile(rf"{PARTIAL}|\d{{8}}T\d{{6}}\.\d{{6}}Z{re.escape(REMOVING)}")


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

    def write(self, folder: Path) -> None:
        """Write it into a backup's folder: whole, flushed to disk, or not at all."""
        beside = folder / f".{NAME}"
        with beside.open("w", encoding="utf-8") as out:
            json.dump(asdict(self), out, indent=1)
            out.flush()
            os.fsync(out.fileno())
        beside.replace(folder / NAME)


def read(folder: Path) -> Manifest:
    """The manifest of a backup. Errors: LakeError where it is none that this version wrote."""
    place = folder / NAME
    try:
        raw: dict[str, Any] = json.loads(place.read_text(encoding="utf-8"))
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


def dated(home: Path) -> list[tuple[Path, datetime | None]]:
    """Folders of the backups of one pipeline, whatever they are called, with their manifests' times, oldest first.

    Those whose manifest cannot be read (None) come before all others. A link to a backup is no backup.
    """
    found = [(place, _at(place)) for place in _whole(home) if not place.is_symlink()]
    return sorted(found, key=lambda one: (one[1] is not None, one[1] or EPOCH, one[0].name))


def backups(home: Path) -> list[Path]:
    """Folders of the backups of one pipeline, in the order of `dated`."""
    return [place for place, _ in dated(home)]


def find(folder: Path, pipeline: str, at: str) -> tuple[Path, Manifest]:
    """A pipeline's backup in a folder: the newest, or the one called `at`; the folder may be a backup itself.

    `at` may also name a link to one. Errors: ConfigError where there is none, LakeError for a manifest that cannot be
    read: of the newest only where no other can be.
    """
    if not at and _is_whole(folder):
        return folder, _of(folder, pipeline)
    home = folder / pipeline
    known = [place.resolve() for place in _whole(home) if place.name == at] if at else backups(home)
    if not known:
        names = ", ".join(place.name for place in backups(home)[-5:])
        begun = "; one was begun and never finished" if (home / PARTIAL).exists() else ""
        raise ConfigError(
            f"{folder}: holds no backup {f'{at} ' if at else ''}of pipeline {pipeline}{begun}",
            remedy=f"Name one of {names}" if names else "Give the folder that `clickjoin backup --to` was given",
        )
    return known[-1], _of(known[-1], pipeline)


def _whole(home: Path) -> list[Path]:
    return [place.parent for place in home.glob(f"*/{NAME}") if _is_whole(place.parent)]


def _is_whole(folder: Path) -> bool:
    return (folder / NAME).is_file() and not is_left(folder.resolve().name)


def _at(folder: Path) -> datetime | None:
    try:
        return datetime.fromisoformat(read(folder).at)
    except LakeError:
        return None


def _of(folder: Path, pipeline: str) -> Manifest:
    found = read(folder)
    if found.pipeline != pipeline:
        raise ConfigError(
            f"{folder}: is a backup of pipeline {found.pipeline}, not of {pipeline}",
            remedy="Give this pipeline's own backup, or that one's file with --config",
        )
    return found
