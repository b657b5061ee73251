"""What a store of S3 refuses, as errors that name the place and say what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from botocore.exceptions import BotoCoreError, ClientError

from clickjoin.model.errors import LakeError, StoreBusy
from clickjoin.model.store_faults import store_fault

_GONE = ("404", "NoSuchKey", "NotFound")
TRY_AGAIN = "What is there now is whole as far as it goes: call it again"


@contextmanager
def asking(place: str) -> Iterator[None]:
    """Ask a store in here. Errors: FileNotFoundError; LakeError, or StoreBusy where it passes, by name."""
    try:
        yield
    except (ClientError, BotoCoreError) as error:
        if isinstance(error, ClientError) and error.response["Error"]["Code"] in _GONE:
            raise FileNotFoundError(place) from error
        known = store_fault(f"{type(error).__name__}: {error}")
        if known is None:
            raise LakeError(f"{place}: the store refused ({error})", remedy=TRY_AGAIN) from error
        raise (StoreBusy if known.passes else LakeError)(f"{place}: {known.why}", remedy=known.remedy) from error
