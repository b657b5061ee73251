"""Who else may read what is written: nobody, unless the deployment says otherwise."""

from __future__ import annotations

import os
import re

from clickjoin.model.errors import ConfigError

VARIABLE = "CLICKJOIN_UMASK"
_DEFAULT = "077"


def umask() -> int:
    """What CLICKJOIN_UMASK says, in octal; 077 unless it is set. Errors: ConfigError."""
    text = os.environ.get(VARIABLE) or _DEFAULT
    if not re.fullmatch(r"0?[0-7]{3}", text):
        raise ConfigError(f"{VARIABLE} is {text!r}", remedy="Write three octal digits: 077, 027, 007 or 022")
    return int(text, 8)


def in_force() -> int:
    """What this process makes files and folders with now."""
    known = os.umask(0o077)
    os.umask(known)
    return known


def keep_private() -> None:
    """From now on, files and folders of this process and of those that it starts are made with `umask`.

    Tables and their logs hold records as they came in. For processes that are clickjoin's own. Errors: ConfigError.
    """
    os.umask(umask())
