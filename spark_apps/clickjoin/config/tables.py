"""Tables as sources: any Delta table, and the output of another pipeline."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from clickjoin.config.types import Place, Strict
from clickjoin.model.outputs import DEDUPLICATED, RECORD, RECORDS

Start = Annotated[
    Literal["earliest", "latest"] | Annotated[int, Field(ge=0)],
    Field(
        description="what is read first: all rows of the table, none but what comes, or what a version and later added"
    ),
]


class _Table(Strict):
    """What both kinds have."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    start: Start = Field("earliest", alias="from")


class Delta(_Table):
    """A Delta table: what each of its versions adds."""

    kind: Literal["delta"] = Field(description="a Delta table, whoever writes it")
    path: Place = Field(description="folder of the table, relative to the pipeline's file, or s3://BUCKET/PREFIX")
    json_columns: tuple[str, ...] = Field(
        (), description="columns of JSON text, whose objects become part of the record"
    )


class OfPipeline(_Table):
    """The output of another pipeline."""

    kind: Literal["pipeline"] = Field(description="the output of another pipeline")
    name: str = Field(pattern=r"^[a-z][a-z0-9_-]{0,62}$", description="the other pipeline")
    lake: Place | None = Field(None, description="its lake; default: the one of this pipeline")
    output: Literal["joined", "deduplicated"] = Field(
        "joined", description="its output's table: deduplicated where it is of one stream"
    )
    json_columns: tuple[str, ...] = Field(
        default_factory=lambda said: (RECORD,) if said.get("output") == DEDUPLICATED else tuple(RECORDS.values()),
        description="columns of JSON text, whose objects become part of the record; default: its whole records",
    )

    @property
    def root(self) -> str:
        """Folder of the other pipeline's tables."""
        return f"{(self.lake or '').rstrip('/')}/{self.name}"

    @property
    def path(self) -> str:
        """Folder of its output."""
        return f"{self.root}/{self.output}"
