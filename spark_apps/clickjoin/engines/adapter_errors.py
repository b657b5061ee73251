"""What an adapter did wrong, as one error whichever engine called it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from clickjoin.model.errors import AdapterError
from clickjoin.spark.failures import adapter_fault

if TYPE_CHECKING:
    from clickjoin.engines.context import Context


@contextmanager
def adapter_errors(ctx: Context, unchanged: str = "nothing of this batch was claimed") -> Iterator[None]:
    """Errors: AdapterError where an adapter is why a task failed; `unchanged`: what it says is as it was."""
    try:
        yield
    except Exception as error:
        fault = adapter_fault(error)
        if fault is None:
            raise
        raise AdapterError(
            f"adapter {ctx.pipeline.adapter}: merge_table {fault}",
            remedy=f"Fix the adapter; {unchanged}",
        ) from error
