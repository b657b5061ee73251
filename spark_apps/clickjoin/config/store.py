"""Where a pipeline's S3 is. Never who asks: credentials are no part of a file that people share."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from clickjoin.config.types import Strict
from clickjoin.model.stores import Store

_SECRET = re.compile(r"secret|passw|token|credential|access[_.-]?key|api[_.-]?key|^(key|user|username)$", re.IGNORECASE)
_ELSEWHERE = (
    "credentials are no part of a pipeline's file; remove it, and set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a "
    "profile (AWS_PROFILE) or a role where clickjoin, Airflow and Spark run"
)


class S3(Strict):
    """The store that the lake lies in; what is left out is as the environment has it (`AWS_*`)."""

    endpoint: str | None = Field(None, description="URL of a server that is not Amazon's, such as https://s3.example")
    region: str | None = Field(None, pattern=r"^[a-z0-9-]+$", description="such as eu-west-1")
    path_style: bool | None = Field(
        None, description="whether a bucket is part of the path, and not of the host's name; default: with an endpoint"
    )

    @model_validator(mode="before")
    @classmethod
    def _without_secrets(cls, value: Any) -> Any:
        found = [str(name) for name in value if _SECRET.search(str(name))] if isinstance(value, dict) else []
        if found:
            raise ValueError(f"{', '.join(found)}: {_ELSEWHERE}")
        return value

    @field_validator("endpoint")
    @classmethod
    def _plain(cls, value: str | None) -> str | None:
        if value is None:
            return None
        parts = urlsplit(value)
        if parts.username or parts.password:
            raise ValueError(f"holds a user or a password: {_ELSEWHERE}")
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/") or parts.query:
            raise ValueError("is no server's address; write http://HOST:PORT or https://HOST:PORT")
        return value.rstrip("/")

    @property
    def store(self) -> Store:
        """As plain data."""
        return Store(self.endpoint, self.region, self.path_style)
