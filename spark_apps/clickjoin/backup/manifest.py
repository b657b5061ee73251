"""What a backup holds. It is written last: a folder without one is no backup."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from clickjoin.errors import ConfigError, LakeError

NAME = "manifest.json"
PARTIAL = "partial"


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
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise LakeError(f"{place}: cannot be read ({error})", remedy="Restore another backup (--at)") from error
    if wrong := [
        path for path in found.files if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts
    ]:
        raise LakeError(f"{place}: names {wrong[0]}, outside of the backup", remedy="Restore another backup (--at)")
    return found


def backups(home: Path) -> list[Path]:
    """Folders of the backups of one pipeline, oldest first."""
    return sorted(place.parent for place in home.glob(f"*/{NAME}") if place.parent.name != PARTIAL)


def find(folder: Path, pipeline: str, at: str) -> tuple[Path, Manifest]:
    """A pipeline's backup in a folder: the newest, or the one called `at`; the folder may be a backup itself.

    Errors: ConfigError where there is none, LakeError for a manifest that cannot be read.
    """
    if not at and (folder / NAME).is_file() and folder.name != PARTIAL:
        return folder, _of(folder, pipeline)
    known = backups(folder / pipeline)
    chosen = [place for place in known if not at or place.name == at]
    if not chosen:
        names = ", ".join(place.name for place in known[-5:])
        begun = "; one was begun and never finished" if (folder / pipeline / PARTIAL).exists() else ""
        raise ConfigError(
            f"{folder}: holds no backup {f'{at} ' if at else ''}of pipeline {pipeline}{begun}",
            remedy=f"Name one of {names}" if names else "Give the folder that `clickjoin backup --to` was given",
        )
    return chosen[-1], _of(chosen[-1], pipeline)


def _of(folder: Path, pipeline: str) -> Manifest:
    found = read(folder)
    if found.pipeline != pipeline:
        raise ConfigError(
            f"{folder}: is a backup of pipeline {found.pipeline}, not of {pipeline}",
            remedy="Give this pipeline's own backup, or that one's file with --config",
        )
    return found
