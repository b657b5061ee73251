"""What work says to people: lines on a console, in a log, in a test's list; and figures as people read them."""

from __future__ import annotations

from collections.abc import Callable

Reporter = Callable[[str], None]


_SMALL = 10.0  # of larger figures four places are more than anybody asks for


def figure(value: float) -> str:
    """A figure to four places, and to more where those would make a whole of what is none: 0.99996 is not 1."""
    places = range(4, 16) if abs(value) < _SMALL else (4,)
    rounded = (round(value, count) for count in places)
    return f"{next((near for near in rounded if near != round(near)), round(value, places[-1])):,.15g}"
