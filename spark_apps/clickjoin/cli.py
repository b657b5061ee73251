"""`clickjoin`: run a pipeline, look at it, and mend it, from a shell."""

from __future__ import annotations

import json
import sys

from clickjoin.commands import app
from clickjoin.errors import ClickjoinError


def main() -> None:
    """Run the command line; a known error is one message on stderr and exit code 2 (bad configuration) or 3."""
    try:
        app(standalone_mode=True)
    except ClickjoinError as error:
        if "--json" in sys.argv:
            print(json.dumps({"error": type(error).__name__, "message": str(error)}))
        print(f"clickjoin: {error}", file=sys.stderr)
        sys.exit(3 if error.retryable else 2)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
