"""Folders of pages below one folder, on a local disk or on an object store: each is there whole, or not at all."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from errno import ENOTDIR
from pathlib import Path
from typing import Protocol

from clickjoin.kernel.filesystem import local_folder
from clickjoin.lake.location import location, remove_markers
from clickjoin.model.errors import LakeError
from clickjoin.model.places import is_on_s3
from clickjoin.model.store_faults import store_fault

_FIRST = "index.html"  # a folder without it is no report


class ReportFolders(Protocol):
    """The port: paths are relative to the folder of all reports. Errors: LakeError where nothing can be written."""

    def require_writable(self, day: str) -> None:
        """Check that a folder can be made in that of a date."""
        ...

    def exists(self, path: str) -> bool:
        """Whether a folder is there."""
        ...

    def make(self, path: str, pages: Mapping[str, str]) -> None:
        """Make a folder of pages, all or none."""
        ...

    def replace(self, path: str, text: str) -> None:
        """Put a page in the place of the one that is there, in one step."""
        ...

    def remove(self, path: str) -> None:
        """Remove a folder and all below it, if it is there."""
        ...

    def runs(self) -> list[str]:
        """The folders of all runs, `date/run`, sorted."""
        ...


def report_folders(root: str) -> ReportFolders:
    """The folders below a path or URI."""
    folder = local_folder(root)
    return StoredReports(root) if folder is None else LocalReports(folder)


class LocalReports:
    """Reports on a local disk."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def require_writable(self, day: str) -> None:
        """See ReportFolders."""
        probe, dated = self._root / ".probe", self._root / day
        with _refused(self._root):
            if dated.exists() and not dated.is_dir():
                raise NotADirectoryError(ENOTDIR, f"{dated} is no folder")
            self._root.mkdir(parents=True, exist_ok=True)
            probe.touch()
            probe.unlink()

    def exists(self, path: str) -> bool:
        """See ReportFolders."""
        return (self._root / path).exists()

    def make(self, path: str, pages: Mapping[str, str]) -> None:
        """See ReportFolders."""
        folder = self._root / path
        making = folder.with_name(f".{folder.name}")
        with _refused(self._root):
            try:
                making.mkdir(parents=True)
                for name, text in pages.items():
                    (making / name).write_text(text, encoding="utf-8")
                making.rename(folder)
            except OSError:
                shutil.rmtree(making, ignore_errors=True)
                raise

    def replace(self, path: str, text: str) -> None:
        """See ReportFolders."""
        newest = self._root / path
        making = newest.with_name(f".making-{newest.name}")
        with _refused(self._root):
            making.write_text(text, encoding="utf-8")
            making.replace(newest)

    def remove(self, path: str) -> None:
        """See ReportFolders."""
        shutil.rmtree(self._root / path, ignore_errors=True)

    def runs(self) -> list[str]:
        """See ReportFolders."""
        return sorted(str(run.relative_to(self._root)) for run in self._root.glob("*/*-*/"))


class StoredReports:
    """Reports on an object store, where a folder is there once its first page is."""

    def __init__(self, root: str) -> None:
        self._root, self._place = root, location(root)

    def require_writable(self, day: str) -> None:
        """See ReportFolders: the lake lies there too, and was tested when it was opened."""

    def exists(self, path: str) -> bool:
        """See ReportFolders."""
        return bool(self._place.listed(path))

    def make(self, path: str, pages: Mapping[str, str]) -> None:
        """See ReportFolders."""
        with _refused(self._root):
            for name in sorted(pages, key=lambda name: name == _FIRST):
                self._place.write(f"{path}/{name}", pages[name].encode())

    def replace(self, path: str, text: str) -> None:
        """See ReportFolders."""
        with _refused(self._root):
            self._place.replace(path, text.encode())

    def remove(self, path: str) -> None:
        """See ReportFolders."""
        names = [file.path for file in self._place.listed(path)]
        self._place.remove(sorted(names, key=lambda name: not name.endswith(_FIRST)))
        remove_markers(f"{self._root}/{path}")

    def runs(self) -> list[str]:
        """See ReportFolders."""
        folders = {file.path.rpartition("/")[0] for file in self._place.listed()}
        return sorted(folder for folder in folders if folder.count("/") == 1 and "-" in folder.partition("/")[2])


@contextmanager
def _refused(root: Path | str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        why = error.strerror or str(error).splitlines()[0] or type(error).__name__
        fault = store_fault(str(error)) if is_on_s3(str(root)) else None
        raise LakeError(
            f"{root}: quality reports cannot be written there ({fault.why if fault else why})",
            remedy=fault.remedy
            if fault
            else "Make it a folder that this process may write to, or move away what is in its place",
        ) from error
