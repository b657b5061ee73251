"""The words of the product as plain data and pure rules: ids, extents, spans, splits, plans, the timeline, errors.

Imports the standard library alone.
"""
