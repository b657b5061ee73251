"""From bytes to records: what every source of text shares.

A parser of another format enters here.
"""
