"""Every whole pipeline file that a page shows is one that clickjoin takes; every field has a meaning."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from checks import prose
from clickjoin.config import Pipeline, reference
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


def test_a_section_alone_is_taken() -> None:
    text = (ROOT / "docs/configuration.md").read_text(encoding="utf-8")
    whole, section = map(parse, re.findall(r"^```yaml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    assert Pipeline.model_validate(whole | section).quality.delay_p99.fail == 600


def test_they_are_found() -> None:
    assert len(BLOCKS) > 15


def fields(schema: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Every field that a pipeline's file can have, and what it means: a section says it once for all its places."""
    models = schema["$defs"]
    for model, part in {"Pipeline": schema, **models}.items():
        for name, field in part.get("properties", {}).items():
            section = models[field["$ref"].rpartition("/")[2]] if "$ref" in field else {}
            yield f"{model}.{name}", field.get("description", section.get("description", ""))


FIELDS = dict(fields(Pipeline.model_json_schema()))
PAGE = (ROOT / "docs/configuration-fields.md").read_text(encoding="utf-8")


def test_the_page_of_fields_is_what_the_command_prints() -> None:
    again = "print it again: clickjoin schema --config-file --markdown > docs/configuration-fields.md"
    assert f"{reference.markdown()}\n" == PAGE, again


def test_every_field_is_on_the_page() -> None:
    rows = re.findall(r"^\| `([a-z_0-9]+)` \|", PAGE, re.MULTILINE)
    assert sorted(rows) == sorted(name.partition(".")[2] for name in FIELDS)


@pytest.mark.parametrize("field", FIELDS)
def test_every_field_is_described(field: str) -> None:
    said = " ".join(FIELDS[field].split())
    assert re.fullmatch(r"[A-Z`].*\.", said), f"{field}: describe it in a sentence; this is {said!r}"
    long = [each for each in prose.sentences(said) if prose.words_of(each) > prose.LONG]
    assert long == [], f"{field}: split this sentence"


def test_a_row_says_values_default_and_meaning() -> None:
    for row in (
        "| `max_delay` | duration | `1h` | Longest delay between two tries. |",
        "| `max_bytes` | size | `512MB` | Most bytes that a batch takes of each stream, also while it catches up. |",
        "| `shards` | integer from 1 to 10000 | `4` | ",
        "| `repeats` | duration | `registry.retention` | ",
        "| `freshness` | [fields](#qualitydelay_p99-qualityfreshness) | `{warn: 2h}` | ",
        "| `pipeline` | text | must be given | ",
    ):
        assert f"\n{row}" in PAGE
