"""Protections of batches of no records, taken away."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clickjoin.dispatcher.dispatcher import Dispatcher
    from clickjoin.model.batch_plan import BatchPlan


def blind() -> None:
    """A log that cannot be read counts as read: time passes over what is unread in it."""
    from clickjoin.dispatcher import watermarks

    watermarks._blind = lambda plan: False


def own_beat() -> None:
    """Who plans a batch of no records after another process has planned that number keeps the watermark of its own."""
    from clickjoin.dispatcher.dispatcher import Dispatcher

    write = Dispatcher.write

    def own(self: Dispatcher, plan: BatchPlan | None) -> BatchPlan | None:
        first = write(self, plan)
        return plan if first and plan and first.number == plan.number and not plan.splits else first

    Dispatcher.write = own  # type: ignore[method-assign]
