"""Flink SQL beside clickjoin and the floor, on the same lines: state in RocksDB, and on the heap.

.venv/bin/python -m benchmarks.flink --clicks 1000000 --queries 400000 --turns 3
"""
