"""Engines: how a lake's tables are made, read in batches and committed to. `port` says what an engine does, `choose`
picks the one that a pipeline's file names; above this room nothing knows which one that is.

What a batch, a date or a repair does is decided above; only how it is done enters here.
"""
