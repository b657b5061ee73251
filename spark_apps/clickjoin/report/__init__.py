"""What a person asks of a pipeline: how it stands, where an event is, whether the sums agree."""
