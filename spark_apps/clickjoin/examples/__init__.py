"""Adapters to start from.

Only what a user would write enters here, against what users may import.
"""
