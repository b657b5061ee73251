"""Random ids of one stream, each published once: what a batch costs beside a window of few and of many claims.

    PYTHONPATH=infra:spark_apps:. .venv/bin/python -m benchmarks.one_stream --counts 1000000 100000000

Beside it, in the same run: a set in RocksDB, and Structured Streaming's dropDuplicates with its state in RocksDB.
"""
