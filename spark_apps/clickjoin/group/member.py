"""One pipeline of a group: opened in its first round, again after a failure, and left alone once nothing can help."""

from __future__ import annotations

import time
from dataclasses import dataclass
from threading import Thread
from typing import TYPE_CHECKING, Any

from clickjoin.dispatcher.handover import HandOver
from clickjoin.engine import Engine
from clickjoin.lake.requirements import require_lake
from clickjoin.model.errors import ClickjoinError, ExecutorLost, ServerLost
from clickjoin.model.names import joining_name
from clickjoin.model.reporter import Reporter
from clickjoin.report.summary import Summary
from clickjoin.rounds import Round
from clickjoin.spark.executor_failures import gist
from clickjoin.spark.failures import translate
from clickjoin.spark.lazy import LazySession
from clickjoin.spark.session import another, interrupt, make_active, release

if TYPE_CHECKING:
    from clickjoin.config import Pipeline

_MOST_FAILURES = 8  # in a row
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 30.0  # seconds


@dataclass(frozen=True)
class Turn:
    """How long members work. `seconds`: the lease; `hands_over`: until the next process takes each member's place."""

    replica: str
    seconds: float
    hands_over: bool = False


class Member:
    """Not for use from several threads at once."""

    def __init__(
        self, spark: LazySession, pipeline: Pipeline, turn: Turn, report: Reporter, *, lake_exists: bool
    ) -> None:
        """`lake_exists`: a lake without tables is an error."""
        self.pipeline = pipeline
        self.report: Reporter = lambda text: report(f"{pipeline.pipeline}: {text}")
        self.summary = Summary(self.report)
        self.opened = False
        self.failed = ""  # why it is stopped
        self._turn, self._lake_exists = turn, lake_exists
        self._spark = LazySession(lambda: another(spark()))
        self._engine: Engine | None = None
        self._handover: HandOver | None = None
        self._end = time.monotonic() + turn.seconds
        self._failures = 0
        dags = pipeline.airflow.dags
        self._retries = dags is None or "retry" not in dags or pipeline.stream is not None

    def round(self) -> Round | None:
        """Work through a round; None where its work is over. Errors: those that end the work of all members."""
        try:
            if self._is_over():
                return None
            make_active(self._spark.started)  # each round has a thread of its own
            done = self._open().rounds.once(retries=self._retries, done=self.summary.add, problems=self.summary.note)
            self._failures = 0
            return done
        except BaseException as error:  # an adapter that exits, or a library's panic, ends the work of this one alone
            return self._after(error)

    def close(self, *, interrupted: bool = False) -> None:
        """Free what it holds on the Spark server. `interrupted`: and end what it has under way there."""
        if self._spark.started:
            (interrupt if interrupted else release)(self._spark.started)

    def _is_over(self) -> bool:
        """Whether its turn is. Where it is to be opened again the clock says so: what it had open may be gone."""
        if self._handover is not None and self._engine is not None:
            return self._handover.is_over()
        return self._is_late()

    def _is_late(self) -> bool:
        patience = self.pipeline.batch.hand_over if self._turn.hands_over else 0.0
        return time.monotonic() >= self._end + patience

    def give_up(self, seconds: float) -> bool:
        """Whether to wait no longer for a round that has not ended for so long: once its turn is over."""
        if not self._is_late():
            return False
        self.failed = f"its round has not ended for {seconds:.0f} s; look whether its logs' disk or server answers"
        self.report(f"timed out, and is skipped until the next task begins: {self.failed}")
        Thread(target=self.close, kwargs={"interrupted": True}, daemon=True).start()
        return True

    def _open(self) -> Engine:
        if self._engine is not None:
            return self._engine
        if self._lake_exists or self.opened:
            require_lake(self.pipeline.root)
        engine = Engine(self._spark, self.pipeline, joining_name(self._turn.replica))
        self.opened = True
        if self._turn.hands_over:
            engine.warm_up(spark=False)  # what its workers load takes memory, and few members need them
            self._take_over(engine)
        if self._retries:
            engine.finish_redrive()
        self._engine = engine
        return engine

    def _take_over(self, engine: Engine) -> None:
        if self._handover is None:
            handover = HandOver(engine.join, self._turn.seconds, self.pipeline.batch.hand_over)
            handover.take_over()
            self._handover = handover  # not before: where it failed, the next opening takes over again
        else:
            self._handover.carry_on(engine.join)

    def _after(self, error: BaseException) -> Round | None:
        """What follows on a failed round: a pause that grows, or the end of its work."""
        self._engine = None
        known = translate(error) if isinstance(error, Exception) else None
        if isinstance(known, ServerLost) and not isinstance(known, ExecutorLost):
            raise known from error
        shown = known or error
        self._failures += 1
        hopeless = isinstance(shown, ClickjoinError) and not shown.retryable
        if hopeless or self._failures > _MOST_FAILURES:
            self.failed = str(shown) if isinstance(shown, ClickjoinError) else f"{type(shown).__name__}: {gist(shown)}"
            self.report(f"stopped until the next task begins: {self.failed}")
            return None
        pause = min(_FIRST_PAUSE * 2 ** (self._failures - 1), _LONGEST_PAUSE)
        self.report(f"batch failed ({type(shown).__name__}: {gist(shown)}); again in {pause:.0f} s")
        return Round(time.monotonic() + pause)

    def to_dict(self) -> dict[str, Any]:
        """What it did, as a join alone would say it."""
        return self.summary.to_dict()
