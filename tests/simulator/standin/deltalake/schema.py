"""Stands in for deltalake.schema."""

from tests.simulator.rust import Field, PrimitiveType, Schema

__all__ = ["Field", "PrimitiveType", "Schema"]
