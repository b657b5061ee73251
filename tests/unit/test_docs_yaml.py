"""Every pipeline file that a page shows, and every part of one, is taken by clickjoin; every field has a meaning."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from checks import prose
from checks.blocks import Block, blocks, pages
from checks.words import ROOT
from clickjoin.config import Pipeline, reference
from clickjoin.config.streams import Foreign
from clickjoin.yaml_file import parse

BLOCKS = [block for page in pages() for block in blocks(page) if (block.language, block.kind) == ("yaml", "run")]
SIDE = {"source": {"kind": "files", "path": "logs/*.jsonl"}, "event_id": "id", "event_time": "at"}
JOIN = {"primary": SIDE, "foreign": SIDE | {"primary_id": "query", "primary_time": {"lookback": "1h"}}}
OF_A_SIDE = set(Foreign.model_fields)


def merged(one: Any, other: Any) -> Any:
    """Fields of a part over those of a whole."""
    if not (isinstance(one, dict) and isinstance(other, dict)) or "kind" in other:
        return other
    return one | {name: merged(one.get(name), value) for name, value in other.items()}


def parts(text: str) -> list[str]:
    """A block; each of its entries alone where it shows several ways to say the same."""
    text = re.sub(r"^ *…\n", "", text, flags=re.MULTILINE)
    entries = re.split(r"^(?=\w)", text, flags=re.MULTILINE)[1:]
    names = [entry.partition(":")[0] for entry in entries]
    return entries if len({*names}) < len(names) else [text]


def whole(text: str) -> dict[str, Any]:
    """A pipeline's file with the part that a page shows of it."""
    part = parse(text)
    if part.keys() <= OF_A_SIDE:
        part = {"foreign": part}
    sides = {"stream": SIDE} if "stream." in text or "stream" in part else JOIN
    found: dict[str, Any] = merged({"pipeline": "shop", "lake": "lake"} | sides, part)
    return found


def take(text: str) -> None:
    """Refuse a block that is no pipeline's file, or no part of one."""
    for part in parts(text):
        raw = parse(part) if "pipeline" in parse(part) else whole(part)
        assert Pipeline.model_validate(raw).pipeline


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: f"{block.page}:{block.line}")
def test_it_is_taken(block: Block) -> None:
    take(block.text)


@pytest.mark.parametrize(
    "text",
    [
        "qualty: {delay_p99: {fail: 10m}}\n",
        "quality: {delay_p98: {fail: 10m}}\n",
        "source: {kind: files, paths: a}\n",
        "event_time: {column: ts, zone: Europe/Berlin}\nevent_time: {column: ts, zones: Europe/Berlin}\n",
        "output: {columns: {a: stream.a}, records: all}\n",
        "pipeline: shop\nlake: lake\n",
    ],
)
def test_a_wrong_field_is_found(text: str) -> None:
    with pytest.raises(ValueError, match=r"qualty|delay_p98|paths|zones|records|primary"):
        take(text)


def test_they_are_found() -> None:
    assert len(BLOCKS) > 30


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
