"""What `validate` prints."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clickjoin.cli.console import print_json, report_line

if TYPE_CHECKING:
    from clickjoin.report.validate import Matches, Validation
    from clickjoin.sources.sample import Sample


def show(config: Path, found: Validation, as_json: bool) -> None:
    """Print what validation found: what was read, what would go to quarantine, how many find theirs, what is wrong."""
    if as_json:
        return print_json({"file": str(config), "ok": not found.problems, **_data(found)})
    for name, sample in found.samples.items():
        _stream(found.sections[name], sample)
    if found.matches:
        report_line(_matches(found.matches))
    for problem in found.problems:
        report_line(f"{config}: {problem}")
    if not found.problems:
        report_line(f"{config}: all is well")
    return None


def _data(found: Validation) -> dict[str, Any]:
    streams = {
        found.sections[name]: {"read": sample.read, "good": sample.good, "bad": [asdict(bad) for bad in sample.bad]}
        for name, sample in found.samples.items()
    }
    return {"problems": found.problems, "streams": streams, "matches": asdict(found.matches) if found.matches else None}


def _stream(name: str, sample: Sample) -> None:
    bad = sample.read - sample.good
    report_line(f"{name}: records read {sample.read:,}, good {sample.good:,}, would go to quarantine {bad:,}")
    for some in sample.bad:
        report_line(f"  {some.reason}: {some.count:,}, such as {some.path} at offset {some.offset}: {some.detail}")


def _matches(matches: Matches) -> str:
    looked = f"among the first {matches.primary:,} primary events"
    return f"{matches.found:,} of {matches.foreign:,} sampled foreign events find their primary event {looked}"
