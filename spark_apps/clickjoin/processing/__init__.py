"""Per-key processing of a pipeline's output, exactly once: events are read by version, state and outbox are one commit.

What a processor says of events is no matter of this room (`processors`); nor is any Spark. Its tables lie in an own
folder, since no batch of a join may depend on them.
"""
