"""Programs that Go builds once, outside the checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from bootstrap import Problem

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "clickjoin")


def cached(name: str, version: str) -> Path | None:
    """The program, if it has been built."""
    program = CACHE / f"{name}-{version}"
    return program if program.is_file() else None


def program(name: str, package: str, version: str) -> Path:
    """The program, built where it has not been yet. Errors: Problem."""
    if found := cached(name, version):
        return found
    wanted = f"{package}@{version}"
    go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
    if not go:
        raise Problem(f"no Go on this machine, which builds {wanted}")
    print(f"building {wanted} with Go: some minutes, once", flush=True)
    beside = CACHE / f".building-{os.getpid()}"
    env = os.environ | {"GOBIN": str(beside), "GOFLAGS": "-buildvcs=false -mod=mod"}
    done = subprocess.run([go, "install", wanted], env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Problem(f"{wanted} could not be built: {done.stderr[-300:]}")
    (beside / name).replace(CACHE / f"{name}-{version}")
    shutil.rmtree(beside)
    return CACHE / f"{name}-{version}"
