"""Whether the tables agree with the journal: one that is older, or lost its newest commits, is refused at start.

Only facts read from logs, and pure rules over them, enter here; nothing is repaired.
"""
