"""`clickjoin`: run a pipeline, look at it, and fix it, from a shell."""

from __future__ import annotations

import gc
import json
import sys
import traceback

from clickjoin.cli import backup, examples, inspect, job_commands, listing, setup
from clickjoin.cli.base import app
from clickjoin.config.umask import keep_private
from clickjoin.model.errors import ClickjoinError
from clickjoin.spark.failures import translate

# Importing one adds its commands to `app`.
COMMANDS = (setup, job_commands, inspect, listing, backup)
examples.add_to(app)


def main() -> None:
    """Run the command line; a known error is one message on stderr and exit code 2 (bad configuration) or 3."""
    code = _run()
    if code:
        # An error's frames hold DataFrames, often in a cycle. Were they collected only at the interpreter's end, Spark
        # Connect would wait there for ever, since freeing what they have cached needs a thread.
        gc.collect()
    sys.exit(code)


def _run() -> int | str | None:
    try:
        keep_private()
        app(standalone_mode=True)
    except SystemExit as end:
        return end.code
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        ours = error if isinstance(error, ClickjoinError) else translate(error)
        if ours is None:
            traceback.print_exc()
            return 1
        if "--json" in sys.argv:
            print(json.dumps({"error": type(ours).__name__, "message": str(ours)}))
        print(f"clickjoin: {ours}", file=sys.stderr)
        return 3 if ours.retryable else 2
    return 0
