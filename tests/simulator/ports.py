"""The product's ways to real files and logs, led to the model: which files there are, and what a log says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pyarrow.acero as acero

from tests.simulator import clock, rust, workers
from tests.simulator.model import Table

_LOG, _PROBE = "_delta_log", "_clock"


def install() -> None:
    """Replace what reaches for a disk."""
    _replace("clickjoin.faults", reach=lambda point: None)
    _replace("clickjoin.lake.restored", mark=lambda root: "", half_restored=lambda root: "")
    _replace("pyarrow.acero", _group_by=_in_one_thread(acero._group_by))
    _replace("clickjoin.lake.commits", _landed=workers.landed, _flush=workers.flush, absent=absent)
    _replace("clickjoin.lake.commits", ensure_rewritten=lambda table: workers.flush(table.table_uri, table.version()))
    _replace("clickjoin.lake.storage", stored=stored, listed=listed, remove=remove, write=write, absent=absent)
    for module in ("lake.logs", "lake.torn", "agreement.facts", "dispatcher.rebuild"):
        _replace(f"clickjoin.{module}", read_log=read_log)
    for module in ("lake.parts", "verification.damage"):
        _replace(f"clickjoin.{module}", bad_files=bad_files)
    _replace("clickjoin.verification.damage", fill=lambda small, name: ())  # no log has a hole here
    for module in ("lake.history", "verification.overwritten"):
        _replace(f"clickjoin.{module}", transactions=transactions)


def _in_one_thread(call: Callable[..., Any]) -> Callable[..., Any]:
    """Tables of a few rows: threads only cost."""
    return lambda *args, **_: call(*args, use_threads=False)


def has(module: str) -> bool:
    """Whether the product has a module."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _replace(module: str, **parts: Callable[..., Any]) -> None:
    """Those of some functions that a module of the product has."""
    if has(module):
        found = import_module(module)
        for name, part in parts.items():
            if hasattr(found, name):
                setattr(found, name, part)


def _table(root: str) -> Table:
    found = rust.lake().table(root)
    assert found, root
    return found


def _stored(path: str, size: int, at: float) -> Any:
    return import_module("clickjoin.lake.storage").Stored(path, size, at)


def stored(root: str, path: str) -> Any:
    """One file: of a table, or the one that tells the lake's time."""
    if path == _PROBE:
        return _stored(path, 1, rust.lake().now())
    file = rust.lake().files.get(f"{root}/{path}")
    return _stored(path, 1000 * len(file.rows), file.at) if file else None


def listed(root: str, folder: str = "") -> list[Any]:
    """A table's data files, or its log."""
    table, files = _table(root), rust.lake().files
    rust.lake().pause("list", table.name)
    if folder == _LOG:
        return [_stored(f"{_LOG}/{version:020d}.json", 1, at) for version, at in enumerate(table.times)]
    known = [path.removeprefix(f"{root}/") for path in files if path.startswith(f"{root}/")]
    return [stored(root, path) for path in known]


def absent(root: str, sizes: Mapping[str, int]) -> list[str]:
    """Those of some files that are not there."""
    return [path for path in sizes if f"{root}/{path}" not in rust.lake().files]


def remove(root: str, paths: Iterable[str]) -> None:
    """Remove data files."""
    lake = rust.lake()
    for path in paths:
        lake.pause("remove", root.rsplit("/", 1)[-1])
        file = lake.files.pop(f"{root}/{path}", None)
        if file is not None:
            lake.gone[f"{root}/{path}"] = file
            lake.removed += 1


def write(root: str, path: str, data: bytes) -> None:
    """Nothing but the file that tells the time is written this way."""
    assert path == _PROBE, path


def read_log(path: str) -> Any:
    """What a table's log says."""
    logs = import_module("clickjoin.lake.logs")
    table = rust.lake().table(path)
    if table is None:
        return logs.TableLog()
    at = rust.lake().look(table)
    return logs.TableLog(version=at.version, table_id=path, txns=dict(at.txns))


def transactions(path: str, since: Any) -> dict[tuple[str, int], int]:
    """Versions by the transactions that they carry."""
    commits = enumerate(_table(path).commits)
    return {txn: version for version, commit in commits for txn in commit.txns.items()}


def bad_files(small: Any, name: str, *, whole: bool = False) -> list[Any]:
    """Files that the newest version names, and that are gone."""
    root, parts = small.path(name), import_module("clickjoin.lake.parts")
    files = rust.lake().look(_table(root)).files.values()
    gone = [file for file in files if f"{root}/{file.path}" not in rust.lake().files]
    return [parts.BadFile(name, file.path, parts.MISSING, "is gone", len(file.rows)) for file in gone]


def own_clock() -> None:
    """A protection taken away: the clock of whoever collects is taken for the lake's."""
    module: Any = import_module("clickjoin.lake.clock")
    module.read = lambda root: module.Reading(root, clock.now(), clock.now())
