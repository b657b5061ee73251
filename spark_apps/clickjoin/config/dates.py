"""The parts of a pipeline's file about dates: when one is complete, and where logs of the past may come from."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from clickjoin.config.types import Duration, Place, Strict


class Close(Strict):
    """When a date of event time is complete, how long that is waited for, and what happens then."""

    max_out_of_orderness: Duration = Field(
        600.0, description="how much older than those before it a record of a log may be"
    )
    idle_timeout: Duration = Field(
        900.0, description="a stream that gave nothing for so long, and is all read, is at rest"
    )
    pending: Literal["wait", "allow"] = Field("wait", description="allow: a date may close with events that wait")
    wait: Duration = Field(36 * 3600.0, description="after the date's end, at most")
    at_limit: Literal["fail", "close"] = Field("fail", description="close: with what is there by then, and say so")
    late_window: Duration = Field(7 * 86400.0, description="how far back closed dates are checked for late changes")
    lease: Duration = Field(120.0, ge=5, description="how long a date stays taken after a run that was killed")


class Backfill(Strict):
    """What a backfill may ask for."""

    roots: tuple[Place, ...] | None = Field(
        None, description="folders that raw logs are taken below; default: those that the sources' globs start from"
    )
