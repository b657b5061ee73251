"""Where a backup may lie: apart from the lake, and from what the sources read."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from clickjoin.config import Files
from clickjoin.model.errors import ConfigError
from clickjoin.model.places import is_on_s3

if TYPE_CHECKING:
    from clickjoin.config import Pipeline

_GLOB = re.compile(r"[*?[]")


def require_apart(pipeline: Pipeline, folder: Path) -> None:
    """Check that a folder lies neither in the lake nor in a source's folder. Errors: ConfigError."""
    place = Path(os.path.realpath(folder))
    taken = {"the lake": Path(pipeline.root)}
    for name, side in (("primary", pipeline.primary), ("foreign", pipeline.foreign)):
        if not isinstance(side.source, Files) or is_on_s3(side.source.path):
            continue
        parts = Path(side.source.path).parts
        fixed = next((at for at, part in enumerate(parts) if _GLOB.search(part)), len(parts) - 1)
        taken[f"the log folder of {name}.source.path"] = Path(*parts[:fixed])
    for what, inside in taken.items():
        if place.is_relative_to(os.path.realpath(inside)):
            raise ConfigError(f"{folder}: lies inside {what}, {inside}", remedy="Give a folder apart from it")


def require_local(root: str, what: str) -> None:
    """Check that a lake lies on a disk, where a copy of it can be linked and renamed. Errors: ConfigError."""
    if is_on_s3(root):
        raise ConfigError(
            f"{root}: a lake on S3 is not {what} by this command",
            remedy="Have the bucket keep versions, or copy the prefix while every DAG and replica is stopped",
        )
