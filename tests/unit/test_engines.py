"""The kernel's steps by other engines: what one makes has to be the kernel's rows, or there are no figures."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.engines import corners, kernel, of_duckdb
from benchmarks.engines.__main__ import checked, table
from benchmarks.engines.given import Given, Parsed, given
from benchmarks.engines.steps import KERNEL, STEPS, engines, gone, parsers


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Given:
    """A few clicks and queries; some lines are bad, and some come twice."""
    return given(tmp_path_factory.mktemp("engines") / "given", 3000)


def test_each_engine_makes_what_the_kernel_makes(work: Given) -> None:
    there = engines()
    who = checked(there, work)
    assert {"DuckDB", "Polars"} < set(there)
    assert all(set(names) >= {KERNEL, "DuckDB", "Polars"} for names in who.values()), "each does every step"
    parsed = kernel.parse(work.files["clicks"])
    assert len(parsed.bad) >= 3, "the input has bad lines"
    assert work.tables["foreign"].num_rows > work.tables["clicks"].num_rows == 3000, "and lines that come twice"


@pytest.mark.parametrize("step", ["parse", "first", "join", "read", "written"])
def test_other_rows_are_refused(work: Given, step: str) -> None:
    class Lossy(SimpleNamespace):
        def __getattr__(self, name: str) -> Any:
            return getattr(of_duckdb, name)

    made: dict[str, Any] = {
        "parse": lambda file: (found := kernel.parse(file)) and Parsed(found.good, found.bad[1:]),
        "first": lambda rows, order: kernel.first(rows, order).slice(1),
        "join": lambda clicks, queries: kernel.join(clicks, queries).slice(1),
        "read": lambda folder, files: kernel.read(folder, files).slice(1),
        "written": lambda folder, tables, _: kernel.written(folder, tables | {"joined": tables["joined"].slice(1)}),
    }
    with pytest.raises(SystemExit, match="other does not make what the kernel makes"):
        checked({KERNEL: kernel, "other": Lossy(**{step: made[step]})}, work)


def test_lines_that_engines_do_not_keep() -> None:
    said = {name: row.split(" | ") for name, row in _rows(corners.table(parsers(engines())))}
    ours = [row[0] for row in said.values()]
    assert ours.count("refused") == 9
    assert said["its key twice"][0] == "refused" != said["its key twice"][1]
    assert said["an integer of 23 digits"][0] == "`12345678901234567890123`"


def _rows(text: str) -> list[tuple[str, str]]:
    return [(name, rest) for name, _, rest in (row[2:].partition(" | ") for row in text.splitlines()[2:])]


def test_the_table_is_of_multiples(work: Given) -> None:
    found = {
        "versions": {"DuckDB": "2"}, "bytes": {"write": {KERNEL: 2_000_000}},
        "seconds": {"join": {KERNEL: [0.02, 0.01, 0.03], "DuckDB": [0.03, 0.01, 0.05]}},
        "memory": {"join": {KERNEL: 1_000_000, "DuckDB": 2_000_000}},
    }  # fmt: skip
    assert "| join | 20 | 1.50 | 1, 2 |" in table(found)
    assert "kernel 2.00 MB" in table(found)
    made = STEPS["write the four tables"](kernel, work)
    gone(made)
    assert not made.exists()
