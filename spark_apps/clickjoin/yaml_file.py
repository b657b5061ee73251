"""YAML of pipelines' files, as the library and Airflow's DAG files read it: needs PyYAML alone, and imports fast."""

from __future__ import annotations

import re
from typing import Any

import yaml


class _Loader(yaml.SafeLoader):
    """YAML 1.2's scalars (NO, on, 010, 12:30 and dates are text), and its rule that a key is there once."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value != "<<":
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(
                        "while reading fields", node.start_mark, f"{key.value!r} is there twice", key.start_mark
                    )
                seen.add(key.value)
        return super().construct_mapping(node, deep)


_Loader.yaml_implicit_resolvers = {
    first: [(tag, rule) for tag, rule in rules if tag.rpartition(":")[2] in ("null", "merge", "value")]
    for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
for _tag, _rule, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?(0|[1-9][0-9_]*)", "-+0123456789"),
    (
        "float",
        r"[-+]?(0|[1-9][0-9_]*)(\.[0-9]*)?([eE][-+]?[0-9]+)?|[-+]?\.[0-9]+|[-+]?\.(inf|Inf)|\.(nan|NaN)",
        "-+.0123456789",
    ),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"(?:{_rule})$"), list(_first))


def parse(text: str) -> Any:
    """YAML as plain data. Errors: YAMLError, also for a key that is there twice."""
    return yaml.load(text, Loader=_Loader)
