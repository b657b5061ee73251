"""Stands in for deltalake in the simulator's own process: see docs/simulator.md."""

from tests.simulator.rust import (
    CommitProperties,
    DeltaTable,
    Field,
    PrimitiveType,
    Schema,
    Transaction,
    write_deltalake,
)

__all__ = ["CommitProperties", "DeltaTable", "Field", "PrimitiveType", "Schema", "Transaction", "write_deltalake"]
