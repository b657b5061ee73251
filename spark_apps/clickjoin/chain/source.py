"""The output of another pipeline as a source: its rows, and how far that pipeline says that it has come."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from clickjoin.config import OfPipeline
from clickjoin.dispatcher.journal import JournalReader, sequences
from clickjoin.dispatcher.watermarks import BLIND
from clickjoin.lake.delta_reader import DeltaReader
from clickjoin.lake.readable import ReadableTables
from clickjoin.model.errors import LakeError
from clickjoin.model.ids import micros_of
from clickjoin.model.names import RAW
from clickjoin.model.split import Budget, SourceOffset, SourcePlan
from clickjoin.retry.pending import open_pending
from clickjoin.sources.delta.source import DeltaSource
from clickjoin.sources.open import open_source
from clickjoin.sources.port import Source

if TYPE_CHECKING:
    from clickjoin.config.pipeline import Input


@dataclass(frozen=True)
class OutputWatermark:
    """The time before which no event is missing in an output; None: not known, and `why` says why.

    `replica`: whose reading of the logs it rests on; empty where it rests on something else.
    """

    time: datetime | None
    why: str = ""
    replica: str = ""


class Upstream:
    """The pipeline whose tables lie in a folder, as one sees it that reads its output."""

    def __init__(self, root: str) -> None:
        self.root, self.name = root, root.rsplit("/", 1)[-1]
        self._delta: DeltaReader = ReadableTables(root)
        self._waits: tuple[int, datetime | None] | None = None

    def watermark(self) -> OutputWatermark:
        """How far its output has come. What is in it is in the version of `joined` that is read after this call."""
        try:
            return self._watermark()
        except LakeError as error:
            return OutputWatermark(None, str(error))

    def micros(self) -> int | None:
        """The same in microseconds."""
        at = self.watermark().time
        return None if at is None else micros_of(at)

    def _watermark(self) -> OutputWatermark:
        replicas = [
            name for name, sequence in sequences(self._delta) if sequence == "join" and not name.startswith(RAW)
        ]
        settled = {name: self._settled(name) for name in replicas}
        furthest = max((at for at in settled.values() if at), default=None)
        if furthest is None:
            why = f"{self.name}: no batch of it is done whose watermark is known"
            return OutputWatermark(None, why, replicas[0] if replicas else "")
        first = next(name for name, at in settled.items() if at == furthest)
        found = OutputWatermark(furthest, f"{self.name}: has read its logs up to there", first)
        for name in replicas:
            # What a batch under way has claimed is a repeat for all others, and not published yet.
            if self._under_way(name) and (settled[name] is None or settled[name] < furthest):  # type: ignore[operator]
                found = _least(found, settled[name], f"{self.name}: a batch of replica {name} is not done")
        oldest = self._oldest_pending()
        return found if oldest is None else _least(found, oldest, f"{self.name}: an event of that time waits")

    def _settled(self, replica: str) -> datetime | None:
        """The watermark of a replica's newest batch that is done."""
        number = JournalReader(self._delta, self.name, replica, "join").settled()
        key = [("replica", "=", replica), ("sequence", "=", "join"), ("batch", "=", number)]
        rows = self._delta.read("metrics", key, ["watermark"])["watermark"].to_pylist() if number else []
        return rows[0] if rows else None

    def _under_way(self, replica: str) -> bool:
        journal = JournalReader(self._delta, self.name, replica, "join")
        return journal.planned() > journal.settled()

    def _oldest_pending(self) -> datetime | None:
        version = self._delta.version("pending")
        if self._waits is None or self._waits[0] != version:
            self._waits = version, pc.min(open_pending(self._delta)["event_time"]).as_py()
        return self._waits[1]


def _least(found: OutputWatermark, at: datetime | None, why: str) -> OutputWatermark:
    if at is None or found.time is None:
        return OutputWatermark(None, why)
    return OutputWatermark(at, why) if at < found.time else found


class OutputSource(DeltaSource):
    """Rows of an upstream's `joined`, with the upstream's watermark once all of them are planned."""

    def __init__(self, source: OfPipeline, upstream: Upstream, tasks: int) -> None:
        super().__init__(source.path, start=source.start, as_json=source.json_columns, tasks=tasks, absent="not-begun")
        self._upstream = upstream

    def plan(self, offsets: Mapping[str, SourceOffset], budget: Budget) -> SourcePlan:
        """The rows of the versions after the last that was planned."""
        # Before the versions are looked at: what it vouches for is in them.
        mark = self._upstream.micros()
        plan = super().plan(offsets, budget)
        behind = plan.backlog_events or any(problem.kind in BLIND for problem in plan.problems)
        return replace(plan, watermark=None if behind else mark, derived=False)


def by_its_time(item: Input) -> bool:
    """Whether a stream's event time is that of the upstream's own events, so that its watermark holds for them."""
    stream = item.stream
    return stream.event_time == "event_time" or (
        stream.event_time in ("embedded", "uuid7") and stream.event_id == ("event_id",)
    )


def open_input(
    item: Input, *, now: Callable[[], float], tasks: int, here: Set[str] = frozenset(), group: str = ""
) -> Source:
    """The source of a pipeline's stream, for who plans batches of it; see `open_source`."""
    if isinstance(item.source, OfPipeline) and by_its_time(item):
        return OutputSource(item.source, Upstream(item.source.root), tasks)
    return open_source(item.source, now=now, tasks=tasks, here=here, group=group)
