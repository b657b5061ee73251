"""Two batches at once: while a backlog's batch is looked up, claimed and published, the next one is read and written.

Only what may be done over again is done ahead. The journal still plans one batch after the other, and every commit has
its place in that order (see engines/arrow/land_ahead.py).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from clickjoin.dispatcher.peers import gives_way
from clickjoin.dispatcher.planner import Proposal
from clickjoin.dispatcher.watermarks import newer
from clickjoin.engines.port import ReadAhead
from clickjoin.spark.session import make_active

if TYPE_CHECKING:
    from clickjoin.dispatcher.dispatcher import Dispatcher
    from clickjoin.dispatcher.journal import JournalState
    from clickjoin.engines.context import Context
    from clickjoin.sources.port import Source

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Ahead:
    """The next batch as proposed, and what is written of its records; `waited`: seconds until that was done."""

    proposal: Proposal | None = None
    landed: ReadAhead | None = None
    waited: float = 0.0


NOTHING = Ahead()


class Overlap:
    """Works ahead on a thread of its own; nobody else asks the sources meanwhile."""

    def __init__(self, dispatcher: Dispatcher, sources: Mapping[str, Source]) -> None:
        self._dispatcher = dispatcher
        self._sources = sources
        self._pool = ThreadPoolExecutor(1, "clickjoin-ahead")
        self._job: Future[Ahead] | None = None

    def begin(self, ctx: Context) -> None:
        """Begin on the batch after one that has landed, where that has left a backlog and this replica all its time."""
        state, plan = self._dispatcher.known(), ctx.plan
        behind = plan.backlog_events > 0 and state.last == plan.number
        if self._job is None and behind and not gives_way(ctx.lake.delta, ctx.pipeline, plan.replica, plan.planned_at):
            self._job = self._pool.submit(self._work, ctx, state)

    def take(self) -> Ahead:
        """What has been done, once it is done; nothing where none was begun, or it failed.

        The error of one that failed comes again when the batch is read in its turn, unless it was a passing one.
        """
        (job, self._job), begun = (self._job, None), time.perf_counter()
        if job is None:
            return NOTHING
        if error := job.exception():
            _log.warning("the next batch was not read ahead: %s: %s", type(error).__name__, error)
            return NOTHING
        return replace(job.result(), waited=time.perf_counter() - begun)

    def _work(self, ctx: Context, state: JournalState) -> Ahead:
        make_active(ctx.lake.started)
        proposal = self._dispatcher.propose(state, newer(state.newest, ctx.newest))
        if proposal.plan is None:
            return Ahead(proposal)
        following = replace(ctx, plan=proposal.plan)
        return Ahead(proposal, following.lake.land_ahead(following, self._sources))
