"""What keeps a table from being read, as one error that names its place and a remedy."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from clickjoin.lake.delta_reader import DeltaReader
from clickjoin.lake.restored import cut_short, half_restored
from clickjoin.model.errors import ClickjoinError, LakeError, TableMissing
from clickjoin.model.places import folder_of, is_on_s3
from clickjoin.model.store_faults import store_fault

UnreadableLog = DeltaError  # what delta-rs raises for a table whose log it cannot replay
_GONE = ("Path does not exist", "No such file or directory", "Not a Delta table")
_COLOUR = re.compile(r"\x1b\[\d+m")
_FRAME = re.compile(r"\d+: <unknown>|Backtrace")
_REFUSED = ("Permission denied", "PermissionDenied", "Operation not permitted")
_FULL = ("No space left on device", "Disk quota exceeded")


@contextmanager
def readable(root: str, name: str) -> Iterator[None]:
    """Read table `name` of the folder `root` in here. Errors: LakeError for whatever keeps it from that."""
    try:
        yield
    except ClickjoinError as error:
        raise missing(root, name) if isinstance(error, TableMissing) else error from error
    except (OSError, DeltaError, pa.ArrowException) as error:
        raise _translated(root, name, gist(str(error))) from error


class ReadableTables(DeltaReader):
    """DeltaReader for someone who only reads: whatever keeps a table from being read is a LakeError with a remedy."""

    def open(self, name: str) -> DeltaTable:
        """The table at its newest version."""
        with readable(self._root, name):
            return super().open(name)

    def read(self, name: str, filters: list[Any] | None = None, columns: Sequence[str] | None = None) -> pa.Table:
        """Rows of a table as Arrow."""
        with readable(self._root, name):
            return super().read(name, filters, columns)

    def require_same(self) -> None:
        """Nothing: a reader takes the lake that is there now."""


def missing(root: str, name: str) -> LakeError:
    """Why a table is not there."""
    folder = Path(root)
    if half := half_restored(root):
        return cut_short(root, half)
    if "://" not in root and not folder.parent.exists():
        return LakeError(f"{folder.parent}: the lake's folder is not there", remedy=_MOUNT)
    if "://" not in root and not folder.exists():
        new = "If the pipeline is new, switch on its join; if not, mount the lake where Airflow's API server runs"
        return LakeError(f"{root}: holds no tables yet", remedy=new)
    return LakeError(
        f"{folder_of(root, name)}: the table is missing",
        remedy="Restore it (docs/registry.md); where nothing was joined yet, `clickjoin init` makes it",
    )


_MOUNT = "Mount it where Airflow's API server runs, or fix `lake` in the pipeline's file"


def gist(text: str) -> str:
    """What delta-rs or Arrow say, in a line: without colours, and the frames of code that it has no names for."""
    lines = [_COLOUR.sub("", line).strip(" ↳") for line in text.splitlines()]
    return " ".join(line for line in lines if line and not _FRAME.match(line))[:300]


def _translated(root: str, name: str, text: str) -> LakeError:
    place = folder_of(root, name)
    if is_on_s3(root) and (fault := store_fault(text)):
        return LakeError(f"{place}: {fault.why}", remedy=fault.remedy)
    if any(mark in text for mark in _REFUSED):
        return LakeError(
            f"{place}: may not be read (permission denied)",
            remedy=f"Let the user that Airflow's API server runs as ({os.geteuid()}) read the folder and its files",
        )
    if any(mark in text for mark in _FULL):
        return LakeError(f"{place}: the disk is full", remedy="Make room there, then run the same command again")
    if any(mark in text for mark in _GONE):
        if not is_on_s3(root) and not Path(place).is_dir():
            return missing(root, name)
        return LakeError(
            f"{place}: a file that its log names is gone ({text})",
            remedy="Restore it; if a collection ran just now, this passes by itself",
        )
    return LakeError(
        f"{place}: its log or its files are damaged ({text})",
        remedy="Restore the damaged file, or the table, from a copy (docs/registry.md)",
    )
