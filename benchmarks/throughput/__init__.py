"""Events a second of clickjoin and of what people use instead: the same files in, a Delta table out, in turns.

.venv/bin/python -m benchmarks.throughput --clicks 1000000 --turns 3
"""
