"""clickjoin: joins a click stream to a query stream exactly once, on Delta tables.

`clickjoin.open("shop.yaml")` is the way in from Python; see docs/python.md.
"""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clickjoin.api import PipelineHandle

__version__ = "0.1.0"


def open(file: str | PathLike[str], **options: Any) -> PipelineHandle:
    """The pipeline of a file, with `drain`, `run`, `status`, `explain` and `verify`.

    `options`: replica, spark and report, as of `clickjoin.api.PipelineHandle`. Errors: ConfigError.
    """
    from clickjoin.api import PipelineHandle

    return PipelineHandle(file, **options)
