"""Python environments for a cluster's workers: PyArrow and NumPy as locked, or less than that, and no clickjoin."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from bootstrap import VENV
from bootstrap.environment import LOCK
from bootstrap.once import exclusive, fingerprint, stamp, stamped

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "clickjoin")


def bare(*packages: str, python: str = sys.executable) -> Path:
    """The Python of an environment with some packages, as locked; made once, and kept outside the checkout."""
    wanted = fingerprint(_locked(packages), python)
    place = CACHE / f"workers-{wanted[:12]}"
    CACHE.mkdir(parents=True, exist_ok=True)
    with exclusive(CACHE):
        if not stamped(place, wanted):
            _make(place, packages, python)
            stamp(place, wanted)
    return place / "bin/python"


def _make(place: Path, packages: tuple[str, ...], python: str) -> None:
    shutil.rmtree(place, ignore_errors=True)
    uv, target = str(VENV / "bin/uv"), str(place / "bin/python")
    subprocess.run([uv, "venv", "--quiet", "--python", python, str(place)], check=True)
    if packages:
        named = place / "requirements.txt"
        named.write_text(_locked(packages))
        subprocess.run(
            [uv, "pip", "install", "--quiet", "--require-hashes", "--python", target, "-r", str(named)], check=True
        )


def _locked(packages: tuple[str, ...]) -> str:
    """The lock's lines of these packages."""
    text = LOCK.read_text()
    found = (re.search(rf"^{name}==.*(?:\n    --hash.*)*", text, re.MULTILINE) for name in packages)
    return "\n".join(one[0] for one in found if one) + "\n"
