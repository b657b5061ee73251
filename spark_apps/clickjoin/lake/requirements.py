"""What a lake's folder has to be before anything is written: there, and writable."""

from __future__ import annotations

import os
from pathlib import Path

from clickjoin.kernel.filesystem import local_folder
from clickjoin.lake.delta_reader import DeltaReader
from clickjoin.lake.location import LOG
from clickjoin.lake.probe import fault_on_s3
from clickjoin.model.errors import ConfigError, LakeError, StoreBusy
from clickjoin.schemas import ALL

_FIX = "Fix its permissions or its disk, or name another `lake` in the pipeline's file"


def refusal(root: str) -> str:
    """Why a lake's folder cannot be written to, in a sentence; empty if it can, or can be made."""
    if (folder := local_folder(root)) is not None:
        return _of_folder(folder)
    fault = fault_on_s3(root)
    return f"{root}: {fault.why}" if fault else ""


def _of_folder(root: Path) -> str:
    folder = root
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    if not folder.is_dir():
        return f"{root}: cannot be made, since {folder} is no folder"
    if why := _nested(root):
        return why
    for place in (folder, *sorted(root.glob("*/_delta_log"))):
        if not os.access(place, os.W_OK | os.X_OK):
            return f"{root}: cannot be written to ({place})"
    return ""


def _nested(root: Path) -> str:
    """Whether a lake's folder lies inside of a table, or holds another's tables where its own would be made."""
    for folder in (root, *root.parents):
        if (folder / LOG).is_dir():
            return f"{root}: lies inside of the Delta table {folder}, whose housekeeping would remove its files"
    for table in ALL:
        place = root / table.name
        if place.is_dir() and not (place / LOG).exists() and (inner := next(place.glob(f"*/**/{LOG}"), None)):
            return f"{root}: its table {place.name} would be made around {inner.parent}, and its gc remove those files"
    return ""


def has_tables(root: str) -> bool:
    """Whether a pipeline has tables: what there is to look at."""
    delta = DeltaReader(root)
    return delta.exists("registry") or delta.exists("joined")


_LOST = (
    "Mount the lake, or fix `lake` in the pipeline's file; until then nothing is joined, so none can "
    "be joined twice. Only to start again: `clickjoin init`"
)


def require_lake(root: str, remedy: str = _LOST) -> None:
    """Check that a pipeline has tables. Errors: LakeError with `remedy`, as where a disk is not mounted."""
    if not has_tables(root):
        raise LakeError(f"{root}: holds no tables of this pipeline", remedy=remedy)


def require_writable(root: str) -> None:
    """Check that a lake's folder can be written to, or made. Errors: ConfigError, StoreBusy where that will pass."""
    if (folder := local_folder(root)) is not None:
        if why := _of_folder(folder):
            raise ConfigError(why, remedy=_FIX)
    elif fault := fault_on_s3(root):
        raise (StoreBusy if fault.passes else ConfigError)(f"{root}: {fault.why}", remedy=fault.remedy)
