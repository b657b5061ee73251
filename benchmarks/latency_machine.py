"""What a figure was measured on."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil

PACKAGES = ("pyspark", "delta-spark", "apache-airflow", "deltalake", "pyarrow")


def machine() -> dict[str, Any]:
    """Processor, memory, load before the start, and the versions that matter."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 1e9, 1),
        "load_before": round(os.getloadavg()[0], 2),
        "system": platform.platform(),
        "python": platform.python_version(),
        "java": _java(),
        **{name: version(name) for name in PACKAGES},
    }


def save(file: Path, found: Mapping[str, Any] | Sequence[Any]) -> None:
    """Write figures as JSON; its folder is made."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin/java") if home else "java"
    try:
        return subprocess.run([java, "-version"], capture_output=True, text=True, check=True).stderr.splitlines()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return "?"
