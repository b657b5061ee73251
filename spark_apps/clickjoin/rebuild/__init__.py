"""Rebuilding what was lost: the registry from the outputs, the journal from what landed.

What makes one table from others enters here; it stops every process from before it.
"""
