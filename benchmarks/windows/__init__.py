"""Counts by key in tumbling windows beside Structured Streaming and Flink SQL; Nexmark's q5 and q7.

    PYTHONPATH=infra:spark_apps:. .venv/bin/python -m benchmarks.windows --events 1000000 --turns 3

All are given the same events, in order of time, as a backlog that lies there whole, and work through it once, warm.
What each made is compared with what NumPy counts, and there is no figure of one that lost or doubled anything.

- clickjoin: the events are rows in the output (a Delta table) of a pipeline of one stream; `Processing.drain` alone is
  timed. Each batch commits its plan, state with outbox, signals and metrics to Delta, exactly once, also where a
  process is killed or runs twice. Late events are kept. State is in memory, too. One Python process, no Spark.
- Structured Streaming (`transformWithState`, `groupBy(window)`): the same rows as Parquet files, each a batch; state in
  RocksDB, with checkpoints of changes; windows go to Parquet, exactly once for who reads by the sink's own log. Late
  events are dropped. Two cores.
- Flink SQL (`TUMBLE`; q5 and q7 as Nexmark has them): the same rows, a Parquet file for each of two readers; state in
  RocksDB, exactly-once checkpoints every 10 s; Parquet out, committed with them. Late events are dropped. Two cores.

`transformWithState` is given the first of the events alone (`--most`): it takes minutes for more. This project's q5 and
q7 are a processor and a reader of table `signals`, which is timed with it (see nexmark.py).
"""
