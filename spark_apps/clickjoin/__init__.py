"""clickjoin: joins a click stream to a query stream exactly once, on Delta tables.

`clickjoin.open("shop.yaml")` is the way in from Python; see docs/python.md.
"""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clickjoin.api import PipelineHandle

__version__ = "0.1.0"


def open(
    file: str | PathLike[str], *, replica: str = "main", spark: Any = None, report: Callable[[str], None] | None = None
) -> PipelineHandle:
    """The pipeline of a file, with `drain`, `run`, `status`, `explain` and `verify`.

    `replica`: the name of this running copy. `spark`: a session, or what makes one; by default Spark in this process,
    started by what first needs it. `report`: called with a line about each batch. Errors: ConfigError.
    """
    from clickjoin.api import PipelineHandle

    return PipelineHandle(file, replica, spark, report)
