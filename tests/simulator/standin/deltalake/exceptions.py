"""Stands in for deltalake.exceptions."""

from tests.simulator.rust_types import CommitFailedError, DeltaError, TableNotFoundError

__all__ = ["CommitFailedError", "DeltaError", "TableNotFoundError"]
