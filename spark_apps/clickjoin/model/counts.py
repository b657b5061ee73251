"""What a batch counts, and the steps that it times."""

COUNTS = (
    "primary_in", "events_in", "joined", "repeats", "wasted", "pending", "unjoinable", "expired", "filtered",
    "quarantined", "conflict_reruns",
)  # fmt: skip
STEPS = ("plan", "land", "lookup", "claim", "publish", "settle")
