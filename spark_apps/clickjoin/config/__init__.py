"""A pipeline's file: one module for each concern, validated, with errors that name file, field and remedy.

Imports `model` alone. What a section means is documented on its fields.
"""

from clickjoin.config.kafka import Kafka
from clickjoin.config.pipeline import Batch, Pipeline, Retry, json_schema, load
from clickjoin.config.several import Several, load_several
from clickjoin.config.streams import AnySource, Files, Lookback, Primary, columns_of
from clickjoin.config.tables import Delta, OfPipeline

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
