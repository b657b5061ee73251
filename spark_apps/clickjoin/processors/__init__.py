"""What turns the events of a key into signals: the port of per-key processing, and the processors that are shipped.

Pure: NumPy and PyArrow, no lake, no clock. A processor may be given the same events in other batches, and must then say
the same.
"""

from clickjoin.processors.keyed import KeyedProcessor, Said, Seen
from clickjoin.processors.port import NEVER, Done, Processor, Work
from clickjoin.processors.sessions import SessionWindows
from clickjoin.processors.spikes import SpikesAndDips
from clickjoin.processors.tumbling import TumblingCounts

__all__ = [
    "NEVER",
    "Done",
    "KeyedProcessor",
    "Processor",
    "Said",
    "Seen",
    "SessionWindows",
    "SpikesAndDips",
    "TumblingCounts",
    "Work",
]
