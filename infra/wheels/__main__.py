"""`python -m wheels [FOLDER]`: build both wheels into a folder, `dist` unless named."""

from __future__ import annotations

import sys
from pathlib import Path

from bootstrap import ROOT, Problem

from .build import build


def main(arguments: list[str]) -> int:
    """Build them; a known problem is one line."""
    try:
        for wheel in build(Path(arguments[0]) if arguments else ROOT / "dist"):
            print(wheel)
    except Problem as problem:
        print(f"clickjoin: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
