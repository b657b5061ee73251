"""Every whole pipeline file that a page shows is one that clickjoin takes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clickjoin.config import Pipeline
from clickjoin.yaml_file import parse

ROOT = Path(__file__).parents[2]
BLOCKS = [
    (page, text)
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    for text in re.findall(r"^```yaml[^\n]*\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    if re.search(r"^pipeline: ", text, re.MULTILINE)
]


@pytest.mark.parametrize(("page", "text"), BLOCKS, ids=[f"{page.stem}-{n}" for n, (page, _) in enumerate(BLOCKS)])
def test_it_is_taken(page: Path, text: str) -> None:
    assert Pipeline.model_validate(parse(text)).pipeline, page


def test_they_are_found() -> None:
    assert len(BLOCKS) > 15


def fields(schema: dict[str, Any]) -> Iterator[str]:
    """The name of every field that a pipeline's file can have."""
    for part in (schema, *schema["$defs"].values()):
        yield from part.get("properties", {})


def test_every_field_is_explained() -> None:
    pages = "".join(
        (ROOT / f"docs/{name}.md").read_text() for name in ("configuration", "kafka", "logs", "attribution")
    )
    named = set(re.findall(r"[a-z_0-9]+", " ".join(re.findall(r"`([^`]+)`", pages))))
    assert sorted(set(fields(Pipeline.model_json_schema())) - named) == []
