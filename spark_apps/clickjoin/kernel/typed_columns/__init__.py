"""Typed columns: values at paths of JSON records, in whole columns. Runs on executors.

`read` parses, by Arrow where it can and by `by_line` where it cannot, which also finds the type of a column that has
none; `convert` gives values their types; `columns` is what landing and `adapter_output` call.
"""
