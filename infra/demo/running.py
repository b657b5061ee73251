"""The stack as the demo and the benchmarks need it: a pipeline's DAGs switched on, and their runs counted."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import yaml

from bootstrap import ROOT, Problem
from stack import Stack
from stack.setup import Setup

DAG_WAIT, START_WAIT = 300.0, 600.0  # seconds, on a machine that is busy with other things
HERE = ROOT / "dags/pipelines"


class Running:
    """A started stack, and one pipeline on it."""

    def __init__(self, stack: Stack, pipeline: str) -> None:
        self._stack, self._pipeline = stack, pipeline
        self._dags = {kind: f"clickjoin_{kind}__{pipeline}" for kind in ("join", "retry")}
        self.folder = stack.home.folder
        self.url = stack.airflow_url
        self.passwords = stack.home.passwords
        self.logs = stack.home.folder / "airflow/logs"

    def beside(self, pipeline: str) -> Running:
        """Another pipeline on the same stack."""
        return Running(self._stack, pipeline)

    def unpause(self) -> None:
        """Switch on the DAGs that join and retry, once Airflow has found them. Errors: Problem if it does not."""
        self.switch_on(*self._dags)

    def switch_on(self, *kinds: str) -> None:
        """Switch on some DAGs of the pipeline. Errors: as `unpause`."""
        deadline = time.monotonic() + DAG_WAIT
        for dag in (f"clickjoin_{kind}__{self._pipeline}" for kind in kinds):
            while not self._switched_on(dag):
                if time.monotonic() > deadline:
                    raise Problem(f"Airflow does not know DAG {dag} after {DAG_WAIT:.0f} s; {self._import_errors()}")
                time.sleep(0.5)

    def runs(self) -> str:
        """Number and state of the newest run of the join, such as `3 running`."""
        path = f"/dags/{self._dags['join']}/dagRuns?limit=1&order_by=-id"
        try:
            found = self._stack.api("GET", path)
        except OSError:
            return "?"
        newest = found["dag_runs"][0]["state"] if found["dag_runs"] else "none"
        return f"{found['total_entries']} {newest}"

    def require_alive(self) -> None:
        """Check that every server still runs. Errors: Problem that names one that does not, and its log."""
        for server in self._stack.servers:
            if not server.alive():
                raise Problem(f"{server.name} has died: see {server.log}")

    def _switched_on(self, dag: str) -> bool:
        try:
            self._stack.api("PATCH", f"/dags/{dag}?update_mask=is_paused", {"is_paused": False})
        except HTTPError as error:
            if error.code != 404:
                raise
            return False
        return True

    def _import_errors(self) -> str:
        found = self._stack.api("GET", "/importErrors")["import_errors"]
        last = [error["stack_trace"].strip().splitlines()[-1] for error in found]
        return "; ".join(last) or "it reports no errors of import"


@contextmanager
def running(
    home: Path, pipeline: Path, tick: Callable[[], None] = lambda: None, *, keep: bool = False
) -> Iterator[Running]:
    """Start a stack whose only pipelines are those in the folder of this file; everything stops at the end.

    DATABASE, EXECUTOR and so on say what Airflow runs on, as for `make up`. `keep`: it is left up, unless the end is an
    error.
    """
    setup = Setup.given(os.environ)
    stack = Stack(home, pipelines=pipeline.parent, tick=tick, timeout=START_WAIT, setup=setup)
    if not stack.start(tied=not keep):
        raise Problem(f"a stack already runs in {home}")
    try:
        yield Running(stack, pipeline.stem)
    except BaseException:
        stack.stop()
        raise
    if not keep:
        stack.stop()


Source = Path | str | Mapping[str, Any]  # a glob, or a source as a pipeline's file has it


def write_pipeline(file: Path, lake: Path | str, primary: Source, foreign: Source, **changes: Any) -> None:
    """Write a pipeline's file: that of the ZOZO logs, with another lake and other sources, and perhaps other fields."""
    pipeline = yaml.safe_load((HERE / "zozo.yaml").read_text(encoding="utf-8")) | changes
    pipeline["pipeline"], pipeline["lake"] = file.stem, str(lake)
    for stream, source in (("primary", primary), ("foreign", foreign)):
        whole = isinstance(source, Mapping)
        pipeline[stream]["source"] = dict(source) if whole else {"kind": "files", "path": str(source)}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(yaml.safe_dump(pipeline, sort_keys=False), encoding="utf-8")
