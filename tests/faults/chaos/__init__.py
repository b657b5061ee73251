"""Chaos: two replicas, GC, resharding and verification run at once while all that runs is killed at random."""
