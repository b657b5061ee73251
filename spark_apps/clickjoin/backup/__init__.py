"""Copies of a whole lake while joins run, and the way back from one."""
