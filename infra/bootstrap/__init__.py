"""Make a bare checkout ready: checks, Python environment, JARs. Standard library only, as nothing is installed yet."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
INFRA = ROOT / "infra"
VENV = ROOT / ".venv"
JARS = ROOT / ".jars"


class Problem(Exception):
    """What is wrong and what to do about it, in one line for the user."""
