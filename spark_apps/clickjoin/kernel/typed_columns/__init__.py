"""Typed columns: values at paths of JSON records, in whole columns. Runs on executors.

`columns` is what landing and adapters call: it reads, by Arrow where it can and by `by_line` where it cannot, which
also finds the type of a column that has none; `convert` gives values their types.
"""
