"""Stands in for deltalake.schema."""

from tests.simulator.rust_types import Field, PrimitiveType, Schema

__all__ = ["Field", "PrimitiveType", "Schema"]
