"""The product's ways to real files and logs, led to the model: which files there are, and what a log says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any

import pyarrow.acero as acero

from tests.simulator import clock, early, rust, workers
from tests.simulator.model import Table

_LOG, _PROBE = "_delta_log", "_clock"


def install() -> None:
    """Replace what reaches for a disk."""
    _replace("clickjoin.model.failpoint", reach=lambda point: None)
    _replace("clickjoin.lake.restored", mark=lambda root: "", half_restored=lambda root: "")
    _replace("pyarrow.acero", _group_by=_in_one_thread(acero._group_by))
    _replace("clickjoin.lake.committer", _landed=workers.landed, _flush=workers.flush, absent=absent, local_folder=str)
    committer: Any = import_module("clickjoin.lake.committer")
    committer.LocalCommitter.ensure_rewritten = lambda _, table: workers.flush(table.table_uri, table.version())
    _replace("clickjoin.lake.small_reads", rows_of_version=early.rows_of_version, rows_of_files=early.rows_of_files)
    for module in ("lake.clock", "lake.vacuum", "lake.committer"):
        _replace(f"clickjoin.{module}", location=Folder)
    for module in ("lake.log_entries", "lake.log_repair", "lake.log_looks", "rebuild.journal"):
        _replace(f"clickjoin.{module}", read_log=read_log)
    _replace("clickjoin.lake.continuity", filesystem=lambda place: (None, place), read_entry=_no_entry)
    import_module("clickjoin.lake.continuity").Watched._seen = _content
    for module in ("lake.lost_files", "verification.damage"):
        _replace(f"clickjoin.{module}", bad_files=bad_files)
    _replace("clickjoin.verification.damage", fill=lambda delta, name: ())  # no log has a hole here
    for module in ("lake.history", "verification.damage"):
        _replace(f"clickjoin.{module}", transactions=transactions)


def _in_one_thread(call: Callable[..., Any]) -> Callable[..., Any]:
    """Tables of a few rows: threads only cost."""
    return lambda *args, **_: call(*args, use_threads=False)


def _replace(module: str, **parts: Callable[..., Any]) -> None:
    """Some functions of a module of the product. Errors: AttributeError where it has none of that name."""
    found = import_module(module)
    for name, part in parts.items():
        getattr(found, name)
        setattr(found, name, part)


def _content(watched: Any, files: None, folder: str, version: int) -> bytes:
    """What tells a commit from any other, in the place of an entry's digest; nothing where there is none."""
    table = rust.lake().table(watched.path)
    if table is None or version >= len(table.commits):
        return b""
    commit = table.commits[version]
    table.seen[id(commit)] = commit  # lives on, so that no other has its number
    return str(id(commit)).encode()


def _no_entry(*_: Any) -> Any:
    raise FileNotFoundError


def _table(root: str) -> Table:
    found = rust.lake().table(root)
    assert found, root
    return found


def _stored(path: str, size: int, at: float) -> Any:
    return import_module("clickjoin.lake.location").Stored(path, size, at)


class Folder:
    """A table's folder, or the lake's own, in the place of lake.location."""

    def __init__(self, root: str) -> None:
        self._root = root

    def stored(self, path: str) -> Any:
        """One file: of a table, or the one that tells the lake's time."""
        if path == _PROBE:
            return _stored(path, 1, rust.lake().now())
        file = rust.lake().files.get(f"{self._root}/{path}")
        return _stored(path, 1000 * len(file.rows), file.at) if file else None

    def listed(self, folder: str = "") -> list[Any]:
        """A table's data files, or its log."""
        table, files = _table(self._root), rust.lake().files
        rust.lake().pause("list", table.name)
        if folder == _LOG:
            return [_stored(f"{_LOG}/{version:020d}.json", 1, at) for version, at in enumerate(table.times)]
        known = [path.removeprefix(f"{self._root}/") for path in files if path.startswith(f"{self._root}/")]
        return [self.stored(path) for path in known if path.startswith(folder)]

    def remove(self, paths: Iterable[str]) -> None:
        """Remove data files."""
        lake = rust.lake()
        for path in paths:
            lake.pause("remove", self._root.rsplit("/", 1)[-1])
            file = lake.files.pop(f"{self._root}/{path}", None)
            if file is not None:
                lake.gone[f"{self._root}/{path}"] = file
                lake.removed += 1

    def write(self, path: str, data: bytes) -> None:
        """Nothing but the file that tells the time is written this way."""
        assert path == _PROBE, path


def absent(folder: Folder, sizes: Mapping[str, int]) -> list[str]:
    """Those of some files that are not there."""
    return [path for path in sizes if folder.stored(path) is None]


def read_log(path: str) -> Any:
    """What a table's log says."""
    logs = import_module("clickjoin.lake.log_entries")
    table = rust.lake().table(path)
    if table is None:
        return logs.TableLog()
    at = rust.lake().look(table)
    return logs.TableLog(version=at.version, table_id=path, txns=dict(at.txns))


def transactions(path: str, since: Any) -> dict[tuple[str, int], int]:
    """Versions by the transactions that they carry."""
    commits = enumerate(_table(path).commits)
    return {txn: version for version, commit in commits for txn in commit.txns.items()}


def bad_files(delta: Any, name: str, *, whole: bool = False) -> list[Any]:
    """Files that the newest version names, and that are gone."""
    root, parts = delta.path(name), import_module("clickjoin.lake.lost_files")
    files = rust.lake().look(_table(root)).files.values()
    gone = [file for file in files if f"{root}/{file.path}" not in rust.lake().files]
    return [parts.BadFile(name, file.path, parts.MISSING, "is gone", len(file.rows)) for file in gone]


def own_clock() -> None:
    """A protection taken away: the clock of whoever collects is taken for the lake's."""
    module: Any = import_module("clickjoin.lake.clock")
    module.read = lambda root: module.Reading(root, clock.now(), clock.now())
