"""One pipeline as the page sees it: its tables, opened once, and what was read of them, kept until they change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from threading import RLock
from typing import TYPE_CHECKING, Any

from clickjoin.lake.readable import ReadableTables
from clickjoin.lake.snapshot_files import identity
from clickjoin.model.errors import ClickjoinError
from clickjoin.model.places import declare, declare_output
from clickjoin.report import by_date, checks, overview, registry
from clickjoin.report.explain import TABLES as EXPLAINED
from clickjoin.report.explain import explain
from clickjoin.report.history import History
from clickjoin.report.newest_ids import frequent_ids
from clickjoin.report.processing import key_chart
from clickjoin_airflow.status.exact import exact

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin_airflow.pipelines import PipelineFile

_RUNS, _BATCHES, _SIGNALS = 60, 60, 50


class PipelineView:
    """Answers the page's questions about one pipeline, one at a time. Errors: LakeError, which says what to do."""

    def __init__(self, file: PipelineFile) -> None:
        self.file = file
        self._lock = RLock()
        declare(file.tables, file.store)
        declare_output(file.tables, file.output)
        self._reset()

    def _reset(self) -> None:
        self._small = ReadableTables(self.file.tables)
        self._history = History(self._small)
        self._kept: dict[str, tuple[tuple[int, ...], Any]] = {}
        self._places: dict[str, str] = {}

    def overview(self, hours: int, replica: str) -> dict[str, Any]:
        """Figures of each replica, and the series of one or all."""
        now = datetime.now(UTC)

        def read() -> dict[str, Any]:
            found = overview.figures(self._history, now)
            return {"replicas": found, "series": overview.series(self._history, now, hours, replica)}

        found = self._read(["metrics"], read)
        return {"now": now.isoformat(), "unread_files": self._history.unread, **found}

    def batches(self) -> list[dict[str, Any]]:
        """The newest batches."""
        now = datetime.now(UTC)
        return list(self._read(["metrics"], lambda: overview.recent(self._history, now, _BATCHES)))

    def dates(self) -> dict[str, Any]:
        """Every date that tables hold something of, its counts and what is known of it; tables that cannot be read."""
        problems: list[ClickjoinError] = []

        def known(what: str) -> dict[str, Any]:
            try:
                return self._count(what) if what in by_date.TABLES else self._states()
            except ClickjoinError as error:
                problems.append(error)
                return {}

        states = known("states")
        days = by_date.calendar({what: known(what) for what in by_date.TABLES}, states)
        if len(problems) > len(by_date.TABLES):
            raise problems[0]
        return {"dates": days, "problems": [str(problem) for problem in problems]}

    def checks_of(self, day: date) -> list[dict[str, Any]]:
        """The quality checks of a date's newest run."""
        return list(exact(self._read(["quality"], lambda: checks.checks(self._small, day))))

    def check_over_dates(self, name: str) -> list[dict[str, Any]]:
        """What one quality check found at each date, oldest first."""
        suite, _, check = name.partition(".")
        return list(exact(self._read(["quality"], lambda: checks.over_dates(self._small, suite, check))))

    def found(self) -> dict[str, Any]:
        """The last verifications and runs of the quality suites; what to say of ids that are too frequent to be ids."""
        pipeline = self._pipeline()
        window = pipeline.verify.window
        runs = self._keep("verifications", ["verification"], lambda: checks.verifications(self._small, _RUNS, window))
        quality = self._keep("quality", ["quality"], lambda: checks.qualities(self._small, _RUNS))
        streams = [item.name for item in pipeline.inputs]
        frequent = self._keep("frequent ids", streams, lambda: frequent_ids(pipeline, self._small))
        return {"verifications": runs, "quality": quality, "frequent_ids": frequent}

    def registry(self) -> dict[str, Any]:
        """The registry by bucket and shard, and the timeline."""
        tables = ["registry", "registry_boundary", "shard_timeline", "journal"]
        return dict(self._keep("registry", tables, lambda: registry.registry(self._small)))

    def backlog(self) -> dict[str, Any]:
        """By replica: what the sources hold now that is not planned yet, and what waits. Lists the sources' folders."""
        from clickjoin.report.status import backlog, replicas, waiting

        pipeline = self._pipeline()
        waits = self._keep("waiting", ["pending"], lambda: waiting(self._small))
        none = {"pending": 0, "oldest_pending": None}

        def read() -> dict[str, Any]:
            names = replicas(self._small)
            return {name: backlog(pipeline, self._small, name) | waits.get(name, none) for name in names}

        return dict(self._read(["journal"], read))

    def chain(self) -> list[dict[str, Any]]:
        """How the pipelines stand that this one is linked to, itself among them; none where it stands alone."""
        from clickjoin.chain.links import beside
        from clickjoin.report.chain import chain_status

        return list(exact(chain_status(beside(self.file.path))))

    def process(self) -> dict[str, Any] | None:
        """How per-key processing stands, and today's signals; None of a pipeline that has none."""
        from clickjoin.report.processing import process_status, signals_today

        pipeline = self._pipeline()
        if pipeline.process is None:
            return None
        today = signals_today(pipeline, datetime.now(UTC), _SIGNALS)
        return dict(exact({"status": process_status(pipeline), "today": today}))

    def key_chart(self, key: str, chosen: str) -> dict[str, Any]:
        """Counts of one key over time, what was expected, and its signals."""
        return dict(exact(key_chart(self._pipeline(), key, datetime.now(UTC), chosen)))

    def explain(self, event_id: str) -> dict[str, Any]:
        """Where an event is, and its whole way."""
        pipeline = self._pipeline()
        return dict(exact(self._read(EXPLAINED, lambda: explain(pipeline, self._small, event_id))))

    def _count(self, what: str) -> dict[str, int]:
        # What counts is looked up when it is read: by then other tables may be open.
        return dict(self._keep(f"count {what}", [by_date.TABLES[what]], lambda: by_date.count(self._small, what)))

    def _states(self) -> dict[str, dict[str, Any]]:
        return dict(self._keep("states", ["dates"], lambda: by_date.states(self._small)))

    def _pipeline(self) -> Pipeline:
        from clickjoin.config import load

        return load(self.file.path)

    def _keep(self, what: str, tables: Sequence[str], make: Callable[[], Any]) -> Any:
        """What `make` gives, made again only where one of its tables has a new version."""

        def read() -> Any:
            versions = tuple(self._small.version(table) for table in tables)
            known = self._kept.get(what)
            if known is None or known[0] != versions:
                known = self._kept[what] = (versions, make())
            return known[1]

        return self._read(tables, read)

    def _read(self, tables: Sequence[str], make: Callable[[], Any]) -> Any:
        with self._lock:
            self._look(tables)
            try:
                return make()
            except BaseException:
                self._reset()  # what was open may be what went wrong
                raise

    def _look(self, tables: Sequence[str]) -> None:
        """Start again where another table lies in the place of one, or none: a rebuilt registry, a new lake."""
        found = {table: _place(self.file.tables, table) for table in tables}
        if any(self._places.get(table, place) != place for table, place in found.items()):
            self._reset()
        self._places |= found


def _place(tables: str, table: str) -> str:
    """What tells a table's folder from another one of its name; empty if it cannot be seen."""
    try:
        return identity(tables, table)
    except OSError:
        return ""
