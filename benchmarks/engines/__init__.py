"""Each step of a kernel's task by NumPy and PyArrow, as the kernel does it, and by query engines that others keep.

PYTHONPATH=infra:spark_apps:. .venv/bin/python -m benchmarks.engines --rows 100000 --turns 5
"""
