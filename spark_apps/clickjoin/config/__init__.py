"""A pipeline's file: one module for each concern, validated, with errors that name file, field and remedy.

Imports `model` alone. What a section means is documented on its fields.
"""

from clickjoin.config.kafka import Kafka
from clickjoin.config.pipeline import Pipeline, Several, json_schema, load, load_several
from clickjoin.config.sections import Batch, Retry
from clickjoin.config.streams import AnySource, Delta, Files, Lookback, OfPipeline, Primary, columns_of

__all__ = [
    "AnySource",
    "Batch",
    "Delta",
    "Files",
    "Kafka",
    "Lookback",
    "OfPipeline",
    "Pipeline",
    "Primary",
    "Retry",
    "Several",
    "columns_of",
    "json_schema",
    "load",
    "load_several",
]
