"""The steps, and who does them: each gives what it made, and is checked against what the kernel makes."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.engines import corners, kernel, lines
from benchmarks.engines.given import OF_FOREIGN, OF_PRIMARY, Given, Parsed, targets
from benchmarks.engines.result import finished, same, shown, stored

KERNEL, TABLES = "kernel", ("primary", "foreign", "registry", "joined")
MODULES = {KERNEL: "kernel", "DuckDB": "of_duckdb", "Polars": "of_polars", "DataFusion": "of_datafusion"}
Step = Callable[[Any, Given], Any]


def engines() -> dict[str, Any]:
    """The kernel and the engines that are installed, by name."""
    there = {name: module for name, module in MODULES.items() if name == KERNEL or find_spec(name.lower())}
    return {name: import_module(f"benchmarks.engines.{module}") for name, module in there.items()}


def _write(engine: Any, given: Given) -> Path:
    folder = Path(tempfile.mkdtemp(dir=given.folder))
    tables = {name: given.tables[name] for name in TABLES}
    if engine is kernel:
        kernel.written(folder, tables)
        return folder
    held = targets(folder)
    engine.written(folder, tables, {name: target.partitions for name, target in held.items()})
    for target in held.values():
        finished(target)
    return folder


STEPS: dict[str, Step] = {
    "parse clicks, 1 line in 1,000 bad": lambda engine, given: engine.parse(given.files["clicks"]),
    "parse clicks, none bad": lambda engine, given: engine.parse_whole(given.files["clean"]),
    "first of each click": lambda engine, given: engine.first(given.tables["foreign"], OF_FOREIGN),
    "first of each query": lambda engine, given: engine.first(given.tables["primary"], OF_PRIMARY),
    "join clicks to queries": lambda engine, given: engine.join(given.tables["clicks"], given.tables["queries"]),
    "write the four tables": _write,
    "read two buckets of clicks": lambda engine, given: engine.read(given.folder, given.paths),
}


def can(engine: Any, step: str) -> bool:
    """Whether an engine has a way to do a step."""
    return hasattr(engine, "parse") or "1 line" not in step


def is_same(one: Any, other: Any) -> bool:
    """Whether two engines made the same of a step, row for row; of written files also what footers say."""
    if isinstance(one, Parsed):
        return sorted(one.bad) == sorted(other.bad) and same(one.good, other.good)
    if isinstance(one, Path):
        pairs = list(zip(targets(one).values(), targets(other).values(), strict=True))
        said = all(shown(finished(mine)) == shown(finished(theirs)) for mine, theirs in pairs)
        return said and all(stored(mine).equals(stored(theirs)) for mine, theirs in pairs)
    return same(one, other)


def size_of(made: Any) -> int:
    """Bytes of written files; 0 of what is none."""
    return (
        sum(int(str(finished(target)["bytes"])) for target in targets(made).values()) if isinstance(made, Path) else 0
    )


def gone(made: Any) -> None:
    """Remove what was written."""
    if isinstance(made, Path):
        shutil.rmtree(made)


def parsers(there: dict[str, Any]) -> dict[str, corners.Ids]:
    """The ways to the ids of lines that those who are there have, by name."""
    found: dict[str, corners.Ids] = {KERNEL: kernel.ids}
    for name, engine in there.items():
        if hasattr(engine, "extracted"):
            found[f"{name}, texts"] = lines.ids_of(engine.extracted)
        if hasattr(engine, "ids_of_whole"):
            found[f"{name}, its reader"] = engine.ids_of_whole
    return found
