"""Dates: waiting until one is complete, closing it, filling and recomputing old ones.

What works on a range of event time enters here; what a batch does stays in the rooms below.
"""
