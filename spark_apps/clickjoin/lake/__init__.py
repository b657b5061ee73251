"""Delta tables: their logs, files and locations, to read, and the commits that are made without an engine's choice.

What knows a table's files, log or location enters here; what its rows mean does not.
"""
