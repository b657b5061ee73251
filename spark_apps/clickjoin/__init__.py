"""clickjoin: joins a click stream to a query stream exactly once, on Delta tables."""

__version__ = "0.1.0"
