"""How a lake's output is called: `joined`, or `deduplicated` where its pipeline has one stream; and its records.

In code, journals and metrics the output goes by `joined` in either case. Which lakes are of one stream is said by their
pipelines' files, as they are read.
"""

from __future__ import annotations

JOINED, DEDUPLICATED = "joined", "deduplicated"
RECORDS = {"foreign": "foreign_record", "primary": "primary_record"}  # columns of whole records, by their stream
RECORD = "record"  # the column of the whole record of one stream

_of_one_stream: set[str] = set()


def declare_output(root: str, name: str) -> None:
    """Have the output of the lake in a folder or at a URL be called so from now on, in this process."""
    if name == DEDUPLICATED:
        _of_one_stream.add(root.rstrip("/"))
    else:
        _of_one_stream.discard(root.rstrip("/"))


def output_of(root: str) -> str:
    """The name of a lake's output; also of a lake beside it that a restore makes, or has put aside."""
    folder, slash, name = root.rstrip("/").rpartition("/")
    homes = {root.rstrip("/"), f"{folder}{slash}{name.partition('.')[0]}"}  # no pipeline's name has a dot
    return DEDUPLICATED if homes & _of_one_stream else JOINED


def folder_of(root: str, name: str) -> str:
    """Where a table of a lake lies."""
    return f"{root}/{output_of(root) if name == JOINED else name}"
