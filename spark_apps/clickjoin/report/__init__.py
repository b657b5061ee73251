"""What a person asks of a pipeline: how it stands, where an event is, whether the sums agree.

Only readers enter here: no report can write, and none starts Spark but the sums.
"""
