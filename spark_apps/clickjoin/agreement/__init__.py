"""Whether the tables agree with the journal: one that is older than the rest, or lost its newest commits, does not."""
