"""Sessions, the settings that results depend on, shipping code to executors, and what Spark's errors mean.

What every Spark needs enters here; nothing of tables or batches.
"""
