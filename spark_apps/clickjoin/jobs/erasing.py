"""The job that forgets: a person's events leave every table, on request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clickjoin.engine import Engine
from clickjoin.erasure.forget import Erasure
from clickjoin.erasure.wanted import parse
from clickjoin.lake.requirements import require_lake
from clickjoin.model.ids import MICROS
from clickjoin.model.reporter import Reporter

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.spark.lazy import Session


def forget(
    spark: Session,
    pipeline: Pipeline,
    replica: str,
    report: Reporter,
    *,
    where: str | None = None,
    ids: str | None = None,
    request: str | None = None,
    apply: bool = False,
    wait: float = 60.0,
) -> dict[str, Any]:
    """Say which events are meant and what holds their records, or, with `apply`, take the records out of all tables.

    `where`: conditions, one a line; `ids`: file of ids. Neither: all that was ever forgotten, once more.
    """
    wanted = parse((where or "").splitlines(), ids)
    require_lake(pipeline.root)
    engine = Engine(spark, pipeline, replica)
    name = request or f"{replica}/{int(engine.clock() * MICROS)}"
    erasure = Erasure(engine, wanted, name, report, wait)
    return erasure.apply() if apply else erasure.look()
