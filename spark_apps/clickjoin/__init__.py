"""clickjoin: joins a click stream to a query stream exactly once, on Spark and Delta."""

__version__ = "0.1.0"
