"""Proposes a pipeline's file from the logs themselves (`clickjoin init --from-logs`): ids, times, look-up, columns.

What enters here looks at records and guesses, with a reason and how sure it is; nothing of it runs in a batch.
"""
