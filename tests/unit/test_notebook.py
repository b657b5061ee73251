"""The notebook of examples/notebook, cell by cell on real clicks, and what is kept of it in git."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from checks.words import ROOT
from tests.unit.test_recipes import Run

NOTEBOOK: dict[str, Any] = json.loads((ROOT / "examples/notebook/clicks.ipynb").read_text(encoding="utf-8"))


def feed(folder: Path) -> None:
    """The shop's logs, where the demo's feeder writes them in a clone."""
    data, logs = ROOT / "infra/data/zozo", folder / ".run/zozo/logs"
    shutil.copytree(data / "clicks", logs / "clicks")
    (logs / "impressions").mkdir()
    for packed in (data / "impressions").glob("*.gz"):
        (logs / "impressions" / packed.stem).write_bytes(gzip.decompress(packed.read_bytes()))
    for log in logs.rglob("*.jsonl"):
        os.utime(log, (0, time.time() - 3600))  # at rest


def zozo(folder: Path, run: Run) -> None:
    """The lake of the shop's clicks, where `make demo` leaves it in a clone."""
    feed(folder)
    file = folder / "dags/pipelines/zozo.yaml"
    file.parent.mkdir(parents=True)
    file.write_text((ROOT / "dags/pipelines/zozo.yaml").read_text() + "engine: arrow\n")
    assert run("drain", "-c", file)[0] == 0


def test_it_draws_every_click(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    zozo(tmp_path, run)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    cells = ["".join(cell["source"]) for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]
    for cell in cells[:-1]:
        exec(compile(cell, "clicks.ipynb", "exec"), names)
    chart = eval(compile(cells[-1], "clicks.ipynb", "eval"), names).to_dict()  # refuses what Vega-Lite does not know
    assert chart["mark"] == {"type": "bar"}
    (rows,) = chart["datasets"].values()
    assert sum(row["clicks"] for row in rows) == 207
    assert {row["campaign"] for row in rows} == {"men", "women"}
    assert {encoding["field"] for encoding in chart["encoding"].values()} == set(rows[0])


def test_git_keeps_no_output() -> None:
    code = [cell for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]
    assert [(cell["outputs"], cell["execution_count"]) for cell in code] == [([], None)] * 3
