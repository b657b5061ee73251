"""Stands in for deltalake in the simulator's own process: see docs/simulator.md."""

from tests.simulator.rust import DeltaTable, write_deltalake
from tests.simulator.rust_types import (
    CommitProperties,
    Field,
    PostCommitHookProperties,
    PrimitiveType,
    Schema,
    Transaction,
    WriterProperties,
)

__all__ = [
    "CommitProperties",
    "DeltaTable",
    "Field",
    "PostCommitHookProperties",
    "PrimitiveType",
    "Schema",
    "Transaction",
    "WriterProperties",
    "write_deltalake",
]
