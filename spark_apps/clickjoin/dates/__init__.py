"""Dates: waiting until one is complete, closing it, filling and recomputing old ones."""
