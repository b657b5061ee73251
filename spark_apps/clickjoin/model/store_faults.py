"""What an object store answers when it refuses, recognised by the words of its clients: Spark's, Arrow's, delta-rs'."""

from __future__ import annotations

import errno
import re
from typing import NamedTuple

from clickjoin.model.errors import ClickjoinError, LakeError, StoreBusy


class StoreFault(NamedTuple):
    """Why a store refused, and what to do. `passes`: by itself, so that trying again is worth it."""

    why: str
    remedy: str
    passes: bool = False


_KEYS = "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, or the profile or role in their place"
_NO_BUCKET = StoreFault("there is no such bucket", "Create the bucket, or fix its name")
_EXPIRED = StoreFault("the credentials have expired", f"Renew {_KEYS}; what runs needs a restart")
_SKEWED = StoreFault("this machine's clock is too far from the store's", "Set the clock (`timedatectl`)")
_UNKNOWN = StoreFault("the store does not know these credentials", f"Check {_KEYS}, and AWS_REGION")
_NONE = StoreFault("no credentials were found", f"Set {_KEYS}")
_NO_ROLE = StoreFault(
    "no credentials were found, and the service that gives a machine its role does not answer",
    f"Set {_KEYS}; with a role, wait: it is asked again",
    True,
)
_DENIED = StoreFault(
    "access is denied (403)", f"Check {_KEYS}, and let them list, read, write and delete below that prefix"
)
_BUSY = StoreFault("the store asks for fewer requests (503)", "Wait: it is tried again, with growing pauses", True)
_ENDPOINT = "its endpoint (s3.endpoint in the pipeline's file, else AWS_ENDPOINT_URL)"
_AWAY = StoreFault("the store does not answer", f"Start it, or check {_ENDPOINT} and the network", True)
_NO_TLS = StoreFault("the store does not speak TLS", f"Write http:// in {_ENDPOINT}, or have the store speak it")
_UNTRUSTED = StoreFault(
    "its certificate is not accepted", "Name its authority's file in AWS_CA_BUNDLE, or fix its address"
)
_ADDRESS = re.compile(r"https?://[\w.:\[\]-]+|(?<=connect to )[\w.-]+:\d+|(?<=resolve host: )[\w.-]+")
_CAUSES = {
    "connection refused": "connection refused",
    "name or service not known": "its name is not known",
    "could not resolve host": "its name is not known",
    "timed out": "no answer in time",
}
# Each client spells codes in its own way: they are looked for in capitals and without underscores, in this order.
_CODES = (
    (_NO_BUCKET, ("NOSUCHBUCKET",)),
    (_EXPIRED, ("EXPIREDTOKEN", "TOKENREFRESHREQUIRED")),
    (_SKEWED, ("REQUESTTIMETOOSKEWED", "REQUESTEXPIRED")),
    (_UNKNOWN, ("INVALIDACCESSKEYID", "SIGNATUREDOESNOTMATCH", "INVALIDTOKEN", "NO USER EXISTS")),
    (_UNKNOWN, ("AUTHORIZATIONHEADERMALFORMED",)),
    (_NONE, ("UNABLETOLOCATECREDENTIALS", "IMDS IS DISABLED")),
    (_NO_ROLE, ("LOADING CREDENTIALS", "169.254.169.254")),  # where a machine of Amazon's finds its role
    (_NONE, ("NOCREDENTIALS", "UNABLE TO LOAD CREDENTIALS")),
    (_DENIED, ("ACCESSDENIED", "403 FORBIDDEN", "STATUS CODE: 403", "LACKED THE NECESSARY PRIVILEGES")),
    (_UNKNOWN, ("LACKED VALID AUTHENTICATION",)),
    (_BUSY, ("SLOWDOWN", "SERVICEUNAVAILABLE", "503 SERVICE", "STATUS CODE: 503", "THROTTL")),
    (_NO_TLS, ("INVALIDCONTENTTYPE", "WRONG VERSION NUMBER", "WRONGVERSIONNUMBER")),
    (_AWAY, ("NETWORKCONNECTION", "ENDPOINTCONNECTION", "CONNECTTIMEOUT", "ERROR SENDING REQUEST")),
    (_AWAY, ("UNABLE TO EXECUTE HTTP REQUEST", "COULD NOT CONNECT", "CONNECTIONCLOSED", "CONNECTION RESET")),
    (_AWAY, ("READTIMEOUT", "PROXYCONNECTION", "RESPONSESTREAMING", "INCOMPLETEREAD", "RESPONSE BODY ERROR")),
    (_AWAY, ("PREMATURE END OF",)),
    (_UNTRUSTED, ("SSLERROR",)),
    (_AWAY, ("HTTPCLIENTERROR",)),
)


def store_fault(text: str) -> StoreFault | None:
    """Why an object store refused, from an error's text; None where it is none of these.

    Where it was not reached, `why` names the address that was tried, and the cause where the text says it.
    """
    plain = text.upper().replace("_", "")
    fault = next((fault for fault, codes in _CODES if any(code in plain for code in codes)), None)
    address = _ADDRESS.search(text)
    if address is None or fault not in (_AWAY, _NO_TLS):
        return fault
    cause = next((cause for words, cause in _CAUSES.items() if words in text.lower()), "")
    return fault._replace(why=f"{fault.why} at {address[0]}{f' ({cause})' if cause else ''}")


_OF_STORE = re.compile(r"AWS Error|\AS3 s3://")  # what Arrow's client and this program's own say
_OF_PROCESS = {
    errno.EACCES, errno.EPERM, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EINTR, errno.ESTALE, errno.ETIMEDOUT,
}  # fmt: skip


def not_read(place: str, error: Exception) -> ClickjoinError | None:
    """The error of a file that was not read, where nothing is known of what it holds; None where that is damaged."""
    text = (str(error).splitlines() or [""])[0]
    if isinstance(error, FileNotFoundError) or "NO_SUCH_KEY" in text:
        return None
    if _OF_STORE.search(text):
        known = store_fault(text)
        kind = StoreBusy if known is None or known.passes else LakeError
        return kind(f"{place}: {known.why if known else text}", remedy=known.remedy if known else "Try it again")
    if isinstance(error, OSError) and error.errno in _OF_PROCESS:
        return LakeError(f"{place}: cannot be read ({text})", remedy="Let this process read it, and run it again")
    return None
