"""Stands in for pyspark in the simulator's own process: see docs/simulator.md."""
