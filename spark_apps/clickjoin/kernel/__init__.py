"""All that runs on executors, shipped with each plan: parse, place, screen, look up, join, read and write Parquet.

Imports `model`, NumPy and PyArrow alone; what enters here must need nothing else.
"""
