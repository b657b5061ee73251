"""Stands in for deltalake.transaction in the simulator's own process."""

from tests.simulator.rust_types import AddAction, RemoveAction

__all__ = ["AddAction", "RemoveAction"]
