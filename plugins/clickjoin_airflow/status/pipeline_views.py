"""All pipelines, found as the DAGs find them, and a view for each."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Lock

from airflow.configuration import conf

from clickjoin.model.errors import ClickjoinError
from clickjoin_airflow.pipelines import Found, PipelineFile, find
from clickjoin_airflow.status.lanes import Lanes
from clickjoin_airflow.status.pipeline_view import PipelineView

Signs = tuple[tuple[str, int, int, int], ...]


def _signs(folder: Path) -> Signs:
    """What is another if any file in a folder, or what it holds, is."""
    stats = ((path.name, path.stat()) for path in sorted(folder.glob("*")) if path.exists())
    return (str(folder), 0, 0, 0), *((name, stat.st_ino, stat.st_mtime_ns, stat.st_size) for name, stat in stats)


def _place(file: PipelineFile) -> tuple[object, ...]:
    return file.path, file.tables, file.store


class PipelineViews:
    """The pipelines' files are looked at on every request; a view stays as long as its file names the same tables."""

    def __init__(self, lanes: Lanes) -> None:
        self._lanes = lanes
        self._found: tuple[Signs, Found] | None = None
        self._views: dict[str, PipelineView] = {}
        self._lock = Lock()

    def found(self) -> Found:
        """Good and broken files, of CLICKJOIN_PIPELINES or of `pipelines` in Airflow's folder of DAGs."""
        folder = Path(conf.get_mandatory_value("core", "dags_folder")) / "pipelines"
        signs = _signs(Path(os.environ.get("CLICKJOIN_PIPELINES") or folder))
        known = self._found
        if known is None or known[0] != signs:  # another file, or a file that is another
            known = self._found = (signs, find(folder))
        return known[1]

    def get(self, pipeline: str) -> PipelineView | None:
        """The view of a pipeline; None if no file names it."""
        file = next((file for file in self.found().good if file.name == pipeline), None)
        return None if file is None else self._view(file)

    def read_ahead(self) -> None:
        """Read what a page shows first, of every pipeline; one that cannot be read will say so when it is asked."""
        for file in self.found().good:
            with suppress(ClickjoinError):
                self._lanes.submit(file.name, file.name, partial(self._view(file).overview, 24, ""))

    def _view(self, file: PipelineFile) -> PipelineView:
        with self._lock:
            known = self._views.get(file.name)
            if known is None or _place(known.file) != _place(file):
                known = self._views[file.name] = PipelineView(file)
            return known
