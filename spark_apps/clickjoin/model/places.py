"""Where tables and logs lie: on which server of S3, in which folder, and how a lake's output is called.

A process may work on lakes of several stores (the status page does), so none of it is written to the environment. It
travels to executors with the code that asks for it, and holds no secret.

In code, journals and metrics the output goes by `joined`, also where it is called `deduplicated`, as its pipeline has
one stream. Which lakes are of one stream is said by their pipelines' files, as they are read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import NamedTuple

S3 = "s3://"


def is_on_s3(place: str) -> bool:
    """Whether a place lies on S3."""
    return place.startswith(S3)


def above_globs(place: str) -> str:
    """The nearest folder that holds all that a glob can match."""
    literal, *rest = re.split(r"[*?\[]", place, maxsplit=1)
    return literal.rpartition("/")[0] if rest else place


class Store(NamedTuple):
    """A server of S3: its endpoint (None: Amazon's own), region, and whether buckets are part of the path."""

    endpoint: str | None = None
    region: str | None = None
    path_style: bool | None = None

    @property
    def address(self) -> tuple[str, str]:
        """Scheme and address of the endpoint."""
        scheme, _, address = (self.endpoint or "").rpartition("://")
        return scheme or "https", address

    @property
    def has_tls(self) -> bool:
        """Whether requests are encrypted on their way."""
        return self.address[0] == "https"


_declared: dict[str, Store] = {}


def declare(place: str, store: Store | None) -> None:
    """Have a place on S3, and all below it, lie in a store; None: in the one that the environment names."""
    if store is None:
        _declared.pop(place.rstrip("/"), None)
    else:
        _declared[place.rstrip("/")] = store


def declared(place: str) -> Store | None:
    """What was declared of a place, or of the nearest one above it; None where nothing was."""
    above = [known for known in _declared if f"{place}/".startswith(f"{known}/")]
    return _declared[max(above, key=len)] if above else None


def store_of(place: str, environment: Mapping[str, str] | None = None) -> Store:
    """The store that a place lies in: each field as declared, else as the environment (`AWS_*`) has it.

    With an endpoint of one's own a bucket is part of the path, unless something says otherwise.
    """
    said = declared(place) or Store()
    known = of_environment(os.environ if environment is None else environment)
    endpoint, path_style = said.endpoint or known.endpoint, said.path_style
    if path_style is None:
        path_style = known.path_style
    return Store(endpoint, said.region or known.region, bool(endpoint) if path_style is None else path_style)


def of_environment(environment: Mapping[str, str]) -> Store:
    """The store that an environment names. An endpoint for S3 goes before one for all of a vendor's services."""
    virtual = environment.get("AWS_VIRTUAL_HOSTED_STYLE_REQUEST", "").lower()
    return Store(
        environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL") or None,
        environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or None,
        virtual not in ("1", "true", "yes", "on") if virtual else None,
    )


JOINED, DEDUPLICATED = "joined", "deduplicated"
TOUCHES, TOUCH_COUNT = "touches", "touch_count"  # columns of all primary events of a key and window
TOUCH = {"event_id": "STRING", "event_time": "TIMESTAMP", "position": "BIGINT"}  # of each of them, and its type
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
