"""The reference of a pipeline's file as a Markdown page: a table for each section, from the JSON Schema of the models.

A description that ends with `Default: ….` says what holds where a field is left out, and the schema has no value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from clickjoin.config.pipeline import Pipeline
from clickjoin.config.types import DURATION, SIZE
from clickjoin.model.span import span_text

_Schema = Mapping[str, Any]
_STREAMS = ("stream", "primary", "foreign")
_MORE = {  # the pages that explain a section
    "Pipeline": "choosing.md engines.md adapters.md", "S3": "s3.md",
    "Primary": "one-stream.md logs.md#ids logs.md#times logs.md#one-log-of-several-kinds",
    "Foreign": "choosing.md#how-the-sides-find-each-other", "Files": "logs.md logs.md#objects-on-s3",
    "Kafka": "kafka.md", "Delta": "chains.md", "OfPipeline": "chains.md", "TimeColumn": "logs.md#times",
    "Match": "attribution.md", "Registry": "registry.md one-stream.md#ids-without-a-time",
    "Retry": "choosing.md#retention-and-lateness",
    "Batch": "scheduling.md#from-one-task-to-the-next", "Limits": "bad-input.md",
    "Verify": "verification.md", "Quality": "quality.md", "Close": "dates.md", "Backfill": "dates.md#backfill",
    "Airflow": "dags.md dags.md#one-task-for-several-pipelines scaling.md#many-pipelines-on-one-airflow",
    "Output": "adapters.md#typed-columns-without-python consumers.md#by-date", "Process": "processing.md",
}  # fmt: skip
_INTRODUCTION = """\
Printed from the code by `clickjoin schema --config-file --markdown > docs/configuration-fields.md`. What holds for the
whole file is in [Configuration](configuration.md). A *duration* is a number and `ms`, `s`, `m`, `h`, `d` or `w`. A
*size* is a number of bytes, or a number and `B`, `KB`, `MB`, `GB`, `KiB`, `MiB` or `GiB`."""
_HEAD = ("| field | value | default | meaning |", "| --- | --- | --- | --- |")


def markdown() -> str:
    """The page docs/configuration-fields.md: every field, what it can hold, its default and what it means."""
    return "\n".join(["# Every field of the file", "", _INTRODUCTION, *_Page().lines()])


class _Page:
    """The models of the file, and where in the file each of them is."""

    def __init__(self) -> None:
        whole = Pipeline.model_json_schema(mode="validation")
        self.models: dict[str, _Schema] = {"Pipeline": whole, **whole["$defs"]}
        self.paths: dict[str, list[str]] = {}
        self._walk("Pipeline", "")
        self.heads = {model: self._heading(model) for model in self.paths}

    def _walk(self, model: str, path: str) -> None:
        self.paths.setdefault(model, []).append(path)
        for name, field in self.models[model]["properties"].items():
            for inner in _references(field):
                self._walk(inner, f"{path}.{name}".lstrip("."))

    def _heading(self, model: str) -> str:
        """Its paths, `….source` for that of each stream; and its kind, where there are several."""
        paths = self.paths[model]
        shown = list(dict.fromkeys(_folded(path, paths) for path in paths))
        kind = self._kind(model)
        name = ", ".join(shown) if len(shown) <= 2 else f"{shown[0]} and others"
        return f"{name} of kind {kind}" if kind else name or "The whole file"

    def _kind(self, model: str) -> str:
        return str(self.models[model]["properties"].get("kind", {}).get("const", ""))

    def lines(self) -> Iterator[str]:
        for model, head in self.heads.items():
            schema = self.models[model]
            places = ", ".join(f"`{path}`" for path in self.paths[model])
            yield from (
                "",
                f"{'###' if '.' in head else '##'} {head}",
                "",
                f"{_line(schema['description'])}{_more(model)}",
                "",
            )
            if "others" in head:
                yield from (f"At {places}.", "")
            yield from _HEAD
            for name, field in schema["properties"].items():
                default = "must be given" if name in schema.get("required", ()) else self._default(field)
                cells = (f"`{name}`", self._value(field), default, self._meaning(field))
                yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"

    def _value(self, field: _Schema) -> str:
        """What a field can hold."""
        if "$ref" in field:
            anchor = re.sub(r"[^\w\- ]", "", self.heads[_model(field)].lower()).replace(" ", "-")
            return f"[{self._kind(_model(field)) or 'fields'}](#{anchor})"
        if options := field.get("anyOf", field.get("oneOf")):
            found = dict.fromkeys(self._value(option) for option in options if option.get("type") != "null")
            return "size" if "size" in found else _either(found)
        if words := field.get("enum", [field["const"]] if "const" in field else None):
            return _either(f"`{word}`" for word in words)
        kind = _KINDS[field.get("type", "")]
        if kind in ("list", "mapping"):
            inner = field.get("items", next(iter(field.get("prefixItems", [])), field.get("additionalProperties")))
            said = self._value(inner) if isinstance(inner, Mapping) else ""
            return f"{kind} of {said}" if "`" in said or "](" in said else kind
        if kind == "text":
            return _TEXTS.get(field.get("pattern", field.get("format", "")), "text")
        return kind + _range(field)

    def _default(self, field: _Schema) -> str:
        said, value = _parts(field)[1], field.get("default")
        section = "$ref" in field and _model(field) not in ("Limit", "Late")
        return said or ("-" if section and value is not None else self._shown(field, value, quoted=True))

    def _shown(self, field: _Schema, value: Any, *, quoted: bool = False) -> str:
        """A value as the file writes it."""
        if "$ref" in field and isinstance(value, Mapping):
            fields = self.models[_model(field)]["properties"]
            value = {name: self._shown(fields[name], each) for name, each in value.items() if each is not None}
        if value is None or value in ([], {}):
            return "none"
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if isinstance(value, Mapping):
            text = "{" + ", ".join(f"{name}: {each}" for name, each in value.items()) + "}"
        elif isinstance(value, list):
            text = f"[{', '.join(map(str, value))}]"
        elif not isinstance(value, str | bool):
            kind = self._value(field)
            text = span_text(value) if kind == "duration" else _bytes_text(value) if kind == "size" else text
            text = text.removesuffix(".0")
        return f"`{text}`" if quoted else text

    def _meaning(self, field: _Schema) -> str:
        return _parts(field)[0] or _line(self.models[_model(field)]["description"])


_KINDS = {
    "": "any value", "string": "text", "boolean": "boolean", "integer": "integer", "number": "number", "array": "list",
    "object": "mapping",
}  # fmt: skip
_TEXTS = {DURATION: "duration", SIZE: "size", "date-time": "time", "date": "date"}
_RANGE = {"exclusiveMinimum": " above {}", "minimum": " from {}", "maximum": " to {}"}


def _either(words: Iterable[str]) -> str:
    *others, last = words
    return f"{', '.join(others)} or {last}" if others else last


def _range(field: _Schema) -> str:
    return "".join(text.format(field[name]) for name, text in _RANGE.items() if name in field)


def _bytes_text(size: int) -> str:
    unit = next((unit for unit in ("GB", "MB", "KB") if size and not size % _SIZES[unit]), "B")
    return f"{size // _SIZES[unit]}{unit}"


_SIZES = {"GB": 10**9, "MB": 10**6, "KB": 10**3, "B": 1}


def _more(model: str) -> str:
    pages = _MORE.get(model, "").split()
    names = ((page.partition("#")[2] or page.removesuffix(".md")).replace("-", " ") for page in pages)
    links = (f"[{name}]({page})" for name, page in zip(names, pages, strict=True))
    return f" More: {', '.join(links)}." if pages else ""


def _folded(path: str, paths: list[str]) -> str:
    """`….source` for `primary.source`, where all streams have it."""
    rest = path.partition(".")[2]
    return f"….{rest}" if rest and all(f"{stream}.{rest}" in paths for stream in _STREAMS) else path


def _references(part: Any) -> Iterator[str]:
    """Models that a field can hold."""
    if isinstance(part, Mapping):
        if "$ref" in part:
            yield _model(part)
        part = [value for key, value in part.items() if key not in ("default", "discriminator")]
    for inner in part if isinstance(part, list) else ():
        yield from _references(inner)


def _model(part: _Schema) -> str:
    return str(part["$ref"]).rpartition("/")[2]


def _parts(field: _Schema) -> tuple[str, str]:
    """A field's meaning, and what its description says of its default."""
    meaning, _, default = _line(field.get("description", "")).partition("Default: ")
    return meaning.strip(), default.removesuffix(".")


def _line(text: str) -> str:
    return " ".join(text.split())
