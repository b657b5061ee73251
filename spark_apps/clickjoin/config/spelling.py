"""What somebody meant who misspelt a word of a pipeline's file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel


def close_to(word: str, known: Iterable[str]) -> str:
    """The known word that is most like this one; empty if none is."""
    return next(iter(get_close_matches(word, list(known), n=1)), "")


def fields_at(place: Sequence[str | int], root: type[BaseModel] | None = None) -> list[str]:
    """Fields that a pipeline's file may have at a place, such as `("foreign", "source")`; `root`: of another model."""
    from clickjoin.config.pipeline import Pipeline  # which imports the module that asks

    models = [root or Pipeline]
    for part in place:
        models = _below(models, part)
    return list(dict.fromkeys(field.alias or name for model in models for name, field in model.model_fields.items()))


def _below(models: list[type[BaseModel]], part: str | int) -> list[type[BaseModel]]:
    """Models under a field; under the index of a list, the key of a mapping or the tag of a union: the same ones."""
    fields = [field for model in models for name, field in model.model_fields.items() if part in (name, field.alias)]
    if fields:
        return [model for field in fields for model in _models(field.annotation)]
    tagged = [model for model in models if part in _tags(model)]
    return tagged or models


def _models(kind: Any) -> Iterator[type[BaseModel]]:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        yield kind
    for inner in get_args(kind):
        yield from _models(inner)


def _tags(model: type[BaseModel]) -> set[Any]:
    kinds = (field.annotation for field in model.model_fields.values())
    return {tag for kind in kinds if get_origin(kind) is Literal for tag in get_args(kind)}
