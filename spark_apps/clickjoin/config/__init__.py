"""A pipeline's file: one module for each concern, validated, with errors that name file, field and remedy.

Imports `model` alone. What a section means is documented on its fields.
"""

from clickjoin.config.pipeline import Batch, Files, Lookback, Pipeline, Primary, Retry, json_schema, load

__all__ = ["Batch", "Files", "Lookback", "Pipeline", "Primary", "Retry", "json_schema", "load"]
