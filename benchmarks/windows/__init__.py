"""Counts by key in tumbling windows, side by side: section `process`, Structured Streaming, Flink SQL; Nexmark q5 and q7.

    PYTHONPATH=infra:spark_apps:. .venv/bin/python -m benchmarks.windows --events 1000000 --turns 3
    PYTHONPATH=infra:spark_apps:. .venv/bin/python -m benchmarks.windows --query q5 --query q7

All are given the same events, in order of time, as a backlog that lies there whole, and work through it once, warm. What
each made is compared with what NumPy counts, and no figure is printed of one that lost or doubled anything. What they do:

- clickjoin: the events are rows in the output of a pipeline of one stream (Delta); timed is `Processing.drain` alone. Each
  batch commits its plan, state with outbox, signals and metrics to Delta, exactly once, through kills and late copies too.
  Late events are kept in a table, and what was done is known by ids of rows. One process, no Spark. State in memory.
- Structured Streaming (`transformWithState`, `groupBy(window)`): Parquet files of as many events as a batch of clickjoin's;
  state in RocksDB with changelog checkpoints; windows to Parquet, exactly once by the sink's own log. Late events are dropped.
- Flink SQL (`TUMBLE`, Nexmark's own q5 and q7): Parquet, one file for each of two readers; state in RocksDB, exactly-once
  checkpoints every 10 s; Parquet out, which is committed with them. Late events are dropped.

q5 and q7 of clickjoin's are a processor and a reader of table `signals`, which is timed with it: see nexmark.py.
"""
