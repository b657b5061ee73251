"""Tables as Arrow schemas, for those who write them without Spark."""

from __future__ import annotations

import pyarrow as pa

from clickjoin.kernel.types import arrow_type, delta_type
from clickjoin.schemas.base import Table


def arrow_schema(table: Table) -> pa.Schema:
    """Arrow schema of a table that is written without Spark."""
    return pa.schema([(column.name, arrow_type(delta_type(column.type))) for column in table.columns])
