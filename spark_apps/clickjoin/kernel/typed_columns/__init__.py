"""Typed columns: values at paths of JSON records, in whole columns. Runs on executors.

`read` parses, by Arrow where it can and by `by_line` where it cannot; `convert` gives values their types; `columns` is
both together; `adapter` is what the joiners call, `check` what landing calls, `derive` finds the type of a column
that has none.
"""
