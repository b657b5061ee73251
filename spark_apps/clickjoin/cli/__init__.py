"""The command line `clickjoin`: one module for each kind of command, and what they print.

May import any room; nothing imports it.
"""
