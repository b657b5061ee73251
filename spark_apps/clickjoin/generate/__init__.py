"""Seeded traffic: queries and their clicks as growing JSON-lines logs, with everything that goes wrong in real ones.

What makes logs enters here; it imports `model` alone.

generate("logs", Traffic(clicks=1_000_000, queries=400_000)) writes at once, with event times in the past;
generate("logs", Traffic(clicks=18_000, queries=162_000, rate=1000)) writes live: an id's time is the moment of writing.
"""

from clickjoin.generate.run import Clock, generate
from clickjoin.generate.traffic import Traffic
from clickjoin.generate.truth import StreamTruth, Truth

__all__ = ["Clock", "StreamTruth", "Traffic", "Truth", "generate"]
