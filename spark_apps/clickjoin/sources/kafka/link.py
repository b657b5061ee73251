"""How a source's cluster is reached, from what its configuration says and this process's environment holds."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from clickjoin.kernel.chunk import Link
from clickjoin.kernel.kafka.connection import require_package

if TYPE_CHECKING:
    from clickjoin.config import Kafka


def link_of(source: Kafka, reader: str = "") -> Link:
    """Servers, group, options, and names of the variables that hold secrets. `reader`: who reads."""
    require_package()
    group = f"{source.group}-{reader}" if reader else source.group
    return Link(source.servers, group, tuple(sorted(source.options.items())), source.secrets(os.environ))
