"""Python environments, exactly as locked: `.venv`, and `.venv-docs` for the documentation's site."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from . import INFRA, ROOT, VENV, Problem
from .once import fingerprint, stamp, stamped

UV_LOCK = INFRA / "uv.lock.txt"
LOCK = INFRA / "requirements.lock"
DOCS_LOCK = INFRA / "docs.lock"
DOCS_VENV = ROOT / ".venv-docs"
MISLEADING = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
IMPORTABLE = ("spark_apps", "plugins", "infra")
# Spelled so that a checkout whose path has spaces, or is too long for `#!`, works as well.
LAUNCHER = """\
#!/bin/sh
'''exec' "{python}" "$0" "$@"
' '''
import sys

from clickjoin.cli.main import main

sys.exit(main())
"""


def ensure(venv: Path = VENV) -> None:
    """Make the environment what the lock files say; at once if it is already so."""
    wanted = fingerprint(UV_LOCK, LOCK, str(venv), LAUNCHER, *IMPORTABLE)
    if stamped(venv, wanted) and _works(venv):
        return
    _fill(venv, LOCK)
    _make_importable(venv)
    stamp(venv, wanted)


def ensure_docs(venv: Path = DOCS_VENV) -> None:
    """The same for what builds the documentation's site: nothing of the project is in it."""
    wanted = fingerprint(UV_LOCK, DOCS_LOCK, str(venv))
    if not (stamped(venv, wanted) and _works(venv)):
        _fill(venv, DOCS_LOCK)
        stamp(venv, wanted)


def _fill(venv: Path, lock: Path) -> None:
    print(f"making {venv.name}", flush=True)
    if not _works(venv):
        _create(venv)
    _install(venv, lock)


def _works(venv: Path) -> bool:
    try:
        asked = [str(venv / "bin/python"), "-I", "-c", "import sys, pip; print(sys.version_info[:2], sys.prefix)"]
        answer = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return False
    return answer.stdout.strip() == f"{sys.version_info[:2]} {venv}"


def _create(venv: Path) -> None:
    # Not sys.executable: that may be the Python of the very environment that is to be cleared.
    base = getattr(sys, "_base_executable", sys.executable)
    if subprocess.run([base, "-m", "venv", "--clear", str(venv)], env=_clean()).returncode:
        raise Problem("python3.11 -m venv failed: install its venv module (python3.11-venv on Debian)")


def _install(venv: Path, lock: Path) -> None:
    python = str(venv / "bin/python")
    pip = [python, "-m", "pip", "install", "--quiet", "--require-hashes", "--disable-pip-version-check", "-r"]
    uv = [python, "-m", "uv", "pip", "sync", "--require-hashes", "--python", python, str(lock)]
    if not sys.stderr.isatty():
        uv.append("--quiet")
    if _run([*pip, str(UV_LOCK)]) and _run(uv):
        return
    print("uv cannot install here: trying pip, which takes longer", flush=True)
    if not _run([*pip, str(lock)]):
        raise Problem(
            "the Python packages could not be installed: see above, check network and proxy, make setup again"
        )


def _run(command: list[str]) -> bool:
    return subprocess.run(command, cwd=ROOT, env=_clean()).returncode == 0


def _clean() -> dict[str, str]:
    """The environment without what would lead Python to other packages than its own."""
    return {name: value for name, value in os.environ.items() if name not in MISLEADING}


def _make_importable(venv: Path) -> None:
    packages = venv / f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
    (packages / "clickjoin.pth").write_text("".join(f"{ROOT / name}\n" for name in IMPORTABLE))
    launcher = venv / "bin/clickjoin"
    launcher.write_text(LAUNCHER.format(python=venv / "bin/python"))
    launcher.chmod(0o755)
