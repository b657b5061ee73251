"""Where work says what it does, a line at a time: a console, a log, a test's list."""

from __future__ import annotations

from collections.abc import Callable

Reporter = Callable[[str], None]
