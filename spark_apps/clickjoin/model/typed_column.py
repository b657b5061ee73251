"""A column of the output that holds one value of a record, with a type."""

from __future__ import annotations

from typing import NamedTuple

from clickjoin.model.field_path import FieldPath, path_text


class TypedColumn(NamedTuple):
    """Its name, where its value is (stream foreign | primary, path in that record), its Spark SQL type.

    `default`: what it holds where a record has no value there, as JSON; None: null.
    """

    name: str
    stream: str
    path: FieldPath
    type: str
    default: str | None = None

    @property
    def source(self) -> str:
        """Where its value is, as the pipeline's file names it."""
        return path_text((self.stream, *self.path))
