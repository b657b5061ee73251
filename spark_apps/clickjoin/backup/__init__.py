"""Copies of a whole lake while joins run, and restoring one.

What reads or writes a copy enters here; it takes no lock and starts no Spark.
"""
