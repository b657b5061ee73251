"""Pictures of what the benchmarks found, as SVG: drawn from their JSON, by hand, so that nothing has to be installed.

PYTHONPATH=infra:spark_apps:. .venv/bin/python -m benchmarks.plots benchmarks/results/whole
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any

WIDTH, LEFT, RIGHT, TOP, PANEL = 720, 70, 110, 52, 190
OURS, OTHERS, LINES = "#2f6fb7", "#b4becb", ("#2f6fb7", "#c2620b")
STYLE = (
    "text{font:13px Helvetica,Arial,sans-serif;fill:#1d2733}.t{font-size:16px;font-weight:bold}"
    ".s{fill:#5b6b7f;font-size:12px}.e{text-anchor:end}.m{text-anchor:middle}.g{stroke:#e3e8ee}.x{stroke:#8a97a8}"
)
Points = Sequence[tuple[float, float]]


@dataclass
class Picture:
    """Marks on a white ground, pixels from the upper left."""

    title: str
    height: int
    marks: list[str] = field(default_factory=list)

    def text(self, x: float, y: float, words: str, kind: str = "", colour: str = "") -> None:
        """Write something; `kind` is a class of STYLE."""
        style = f' style="fill:{colour}"' if colour else ""
        self.marks.append(f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}"{style}>{escape(words)}</text>')

    def rule(self, a: tuple[float, float], b: tuple[float, float], kind: str = "g") -> None:
        """A thin straight line."""
        self.marks.append(f'<path d="M{a[0]:.1f} {a[1]:.1f}L{b[0]:.1f} {b[1]:.1f}" class="{kind}"/>')

    def bar(self, x: float, y: float, width: float, colour: str) -> None:
        """A bar that lies."""
        self.marks.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="20" rx="3" fill="{colour}"/>')

    def path(self, points: Points, colour: str) -> None:
        """A line through points."""
        way = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        self.marks.append(f'<path d="M{way}" fill="none" stroke="{colour}" stroke-width="2" stroke-linejoin="round"/>')

    def dot(self, x: float, y: float, colour: str) -> None:
        """A point that was measured."""
        self.marks.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}" stroke="#fff"/>')

    def svg(self) -> str:
        """The whole file."""
        size = f'viewBox="0 0 {WIDTH} {self.height}" width="{WIDTH}" height="{self.height}"'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">\n<title>{escape(self.title)}</title>'
        ground = f'<style>{STYLE}</style>\n<rect width="{WIDTH}" height="{self.height}" fill="#fff"/>'
        name = f'<text x="16" y="28" class="t">{escape(self.title)}</text>'
        return "\n".join([head, ground, name, *self.marks, "</svg>\n"])


def bars(title: str, rows: list[tuple[str, float, str]], ours: str) -> Picture:
    """A bar for each row of label, value and text behind it; `ours` begins the labels that stand out."""
    picture, most = Picture(title, TOP + 34 * len(rows) + 2), max(value for _, value, _ in rows)
    start = max(LEFT, 20 + 7.2 * max(len(label) for label, _, _ in rows))
    for at, (label, value, text) in enumerate(rows):
        y, length = TOP + 34 * at, (WIDTH - start - 170) * value / most
        picture.text(start - 10, y + 15, label, "e")
        picture.bar(start, y, max(length, 1), OURS if label.startswith(ours) else OTHERS)
        picture.text(start + length + 8, y + 15, text, "s")
    return picture


def ticks(most: float) -> list[float]:
    """Some round numbers from 0 to a little beyond the highest value."""
    step = 10 ** math.floor(math.log10(most / 2)) if most > 0 else 1.0
    step = next(step * times for times in (1, 2, 5, 10) if most / (step * times) <= 5)
    return [step * number for number in range(math.ceil(most / step) + 1)]


@dataclass(frozen=True)
class Panel:
    """Lines over a common axis. `marks`: positions on it, with what to write there; `log`: decades lie evenly."""

    unit: str
    lines: Mapping[str, Points]
    marks: Sequence[tuple[float, str]]
    log: bool = False
    dots: bool = True

    def draw(self, picture: Picture, top: float) -> None:
        """Draw it below `top`."""
        values = [y for points in self.lines.values() for _, y in points]
        heights, bottom = ticks(max(values)), top + PANEL - 40
        across, up = self._across(), lambda y: bottom - (bottom - top - 22) * y / heights[-1]
        picture.text(16, top + 6, self.unit, "s")
        for height in heights:
            picture.rule((LEFT, up(height)), (WIDTH - RIGHT, up(height)), "g" if height else "x")
            picture.text(LEFT - 8, up(height) + 4, f"{height:,.10g}", "s e")
        for x, text in self.marks:
            picture.text(across(x), bottom + 18, text, "s m")
        free = top + PANEL
        for colour, (name, points) in sorted(
            zip(LINES, self.lines.items(), strict=False), key=lambda line: line[1][1][-1][1]
        ):
            placed = [(across(x), up(y)) for x, y in points]
            picture.path(placed, colour)
            for x, y in placed if self.dots else []:
                picture.dot(x, y, colour)
            free = min(placed[-1][1] + 4, free - 15)  # the lowest comes first; names do not lie on one another
            picture.text(placed[-1][0] + 9, free, name if len(self.lines) > 1 else "", "", colour)

    def _across(self) -> Callable[[float], float]:
        def placed(x: float) -> float:
            return math.log10(x) if self.log else x

        ends = [placed(x) for points in self.lines.values() for x, _ in points] + [placed(x) for x, _ in self.marks]
        low, span = min(ends), (max(ends) - min(ends)) or 1.0
        return lambda x: LEFT + (WIDTH - RIGHT - LEFT) * (placed(x) - low) / span


def panels(title: str, parts: list[Panel], below: str) -> Picture:
    """Panels one below the other, and what their axis means."""
    picture = Picture(title, TOP + PANEL * len(parts) + 6)
    for number, part in enumerate(parts):
        part.draw(picture, TOP + PANEL * number)
    picture.text((LEFT + WIDTH - RIGHT) / 2, picture.height - 8, below, "s m")
    return picture


def throughput(found: dict[str, Any]) -> Picture:
    """Events a second of each contender."""
    rows = [
        (name, part["events_a_second"], f"{part['events_a_second']:,} events/s")
        for name, part in found["found"].items()
    ]
    return bars(f"Events a second, {found['clicks']:,} clicks", sorted(rows, key=lambda row: -row[1]), "clickjoin")


def flatness(found: dict[str, Any]) -> Picture:
    """Seconds of a batch by rows that are there already."""
    lines = {kind: [(int(n), part["seconds"]) for n, part in sizes.items()] for kind, sizes in found["found"].items()}
    marks = [(int(n), f"{int(n):,}") for n in found["found"]["fresh"]]
    return panels("What history costs a batch of 10,000 clicks", [Panel("seconds", lines, marks, log=True)],
                  "claims and queries that are there already")  # fmt: skip


def latency(found: dict[str, Any]) -> Picture:
    """Percentiles from written to readable."""
    part = found["written_to_readable"]
    rows = [(name, part[name], f"{part[name]:.2f} s") for name in ("p50", "p90", "p99", "max")]
    return bars(f"From written to readable, at {found['load']['rate']:,.0f} events a second", rows, "")


def catchup(found: dict[str, Any]) -> Picture:
    """The backlog, and what fresh clicks see meanwhile, by minutes since the restart."""
    fresh = found["fresh"]
    end = max(fresh[-1][0], found["backlog"][-1][0]) / 60
    marks = [*((at, f"{at:g}") for at in ticks(end) if at <= end), (end, "")]
    lines = {name: [(row[0] / 60, row[at]) for row in fresh] for at, name in ((2, "p90"), (1, "p50"))}
    steps = pairwise([*found["backlog"], (end * 60, 0)])  # it falls when a commit makes some readable
    left = [(moment / 60, count) for (at, count), (until, _) in steps for moment in (at, until)]
    load = found["load"]
    title = f"After an outage of {load['outage'] / 60:,.0f} minutes at {load['rate']:,.0f} events a second"
    parts = [Panel("clicks of the outage that cannot be read yet", {"backlog": left}, marks, dots=False),
             Panel("fresh clicks: seconds from written to readable", lines, marks, dots=False)]  # fmt: skip
    return panels(title, parts, "minutes since the restart")


def cluster(found: dict[str, Any]) -> Picture:
    """Events a second of each contender in each place, for the largest input."""
    most = max(row["clicks"] for row in found["found"])
    rows = [(f"{row['name']}, {row['where']}", row["events_a_second"], f"{row['events_a_second']:,} events/s")
            for row in found["found"] if row["clicks"] == most]  # fmt: skip
    return bars(f"A cluster beside local[2], {most:,} clicks", sorted(rows, key=lambda row: -row[1]), "clickjoin")


DRAWN: dict[str, Callable[[dict[str, Any]], Picture]] = {
    "throughput": throughput, "flatness": flatness, "latency": latency, "catchup": catchup, "cluster": cluster,
}  # fmt: skip


def draw(source: Path) -> Path | None:
    """Draw the picture of a benchmark's JSON beside it; None where there is no such file, or no picture of its kind."""
    kind = source.stem.partition("-")[0]
    if kind not in DRAWN or not source.exists():
        return None
    picture = DRAWN[kind](json.loads(source.read_text(encoding="utf-8")))
    source.with_suffix(".svg").write_text(picture.svg(), encoding="utf-8")
    return source.with_suffix(".svg")


if __name__ == "__main__":
    for file in sorted(Path(sys.argv[1]).glob("*.json")):
        print(draw(file) or f"{file}: no picture of this kind")
