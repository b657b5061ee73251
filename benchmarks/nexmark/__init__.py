"""Nexmark q20, each bid with its auction where that is of category 10: events a second, and a core.

.venv/bin/python -m benchmarks.nexmark --events 1000000 --turns 3
"""
