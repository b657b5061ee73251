"""What a connection says of a Spark Connect server: in its fields, in its extra, or in a file."""

from __future__ import annotations

import json
import traceback
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import Connection
from airflow.sdk._shared.secrets_masker import redact

from checks.blocks import code
from clickjoin.model.errors import ConfigError, ServerLost
from clickjoin.spark.session import connect
from clickjoin_airflow.connect import Connect
from clickjoin_airflow.job import settings

TOKEN = "t0k/en=+;x"
WRITTEN = "t0k%2Fen%3D%2B%3Bx"


def url(**fields: Any) -> str:
    fields["extra"] = json.dumps(fields.pop("extra", {}))
    return Connect(settings(Connection(conn_id="clickjoin_spark", conn_type="clickjoin", **fields))).url()


@pytest.mark.parametrize(("fields", "expected"), [
    ({"host": "localhost"}, "sc://localhost:15002"),
    ({"host": "spark", "port": 15443, "password": TOKEN, "extra": {"use_ssl": True}},
     f"sc://spark:15443/;use_ssl=true;token={WRITTEN}"),
    ({"host": "sc://spark:1/;use_ssl=true", "password": TOKEN}, f"sc://spark:1/;use_ssl=true;token={WRITTEN}"),
    ({"password": TOKEN, "extra": {"url": "sc://localhost:7"}}, f"sc://localhost:7/;token={WRITTEN}"),
    ({"host": "other", "password": "new", "extra": {"url": "sc://localhost:7/;token=old"}},
     "sc://localhost:7/;token=old"),
])  # fmt: skip
def test_where_the_server_is(fields: dict[str, Any], expected: str) -> None:
    assert url(**fields) == expected


@pytest.mark.parametrize(("variable", "expected"), [
    (code("airflow.md", "json")[0], "sc://spark.example.org:15443/;use_ssl=true;token=TOKEN"),
    ('{"conn_type": "clickjoin", "host": "spark", "port": 15443, "password": "t0k/en=+;x", "extra": {"use_ssl": true}}',
     f"sc://spark:15443/;use_ssl=true;token={WRITTEN}"),
    (f"clickjoin://:{WRITTEN}@spark:15443/?use_ssl=true", f"sc://spark:15443/;use_ssl=true;token={WRITTEN}"),
    (f"clickjoin://:{WRITTEN}@localhost/?use_ssl=false", f"sc://localhost:15002/;token={WRITTEN}"),
    ("clickjoin://localhost:7/?use_ssl=False&mode=connect", "sc://localhost:7"),
])  # fmt: skip
def test_a_variable_says_all_that_a_worker_elsewhere_needs(variable: str, expected: str) -> None:
    """As AIRFLOW_CONN_CLICKJOIN_SPARK has it, or Airflow's database, from where the API server hands it to tasks."""
    made = Connection.from_json(variable, "c") if variable[0] == "{" else Connection.from_uri(variable, "c")
    assert Connect(settings(made)).url() == expected


def test_spark_reads_the_token_as_it_is() -> None:
    from pyspark.sql.connect.client.core import DefaultChannelBuilder

    read = DefaultChannelBuilder(url(host="spark", password=TOKEN, extra={"use_ssl": True}))
    assert (read.token, read.use_ssl, read.endpoint) == (TOKEN, True, "spark:15002")


def test_a_file_goes_before_the_host_and_takes_the_password(tmp_path: Path) -> None:
    file = tmp_path / "url"
    extra = {"url_file": str(file)}
    with pytest.raises(ServerLost, match="no server has left its address there"):
        url(host="other", extra=extra)
    file.write_text("sc://localhost:9\n")
    assert url(host="other", password="p", extra=extra) == "sc://localhost:9/;token=p"


def test_no_log_shows_a_token() -> None:
    url(host="localhost", password=TOKEN)
    url(extra={"url": "sc://h:1/;token=inside-the-url;use_ssl=true"})
    assert redact(f"{TOKEN} or {WRITTEN} or inside-the-url!") == "*** or *** or ***!"


def test_no_error_shows_a_token() -> None:
    """Not even one that nobody masks: where no server answers, and where the address can only hang."""
    for host, error in (("localhost", ServerLost), ("elsewhere", ConfigError)):
        with pytest.raises(error) as caught:
            connect(url(host=host, port=1, password=TOKEN))
        said = "".join(traceback.format_exception(caught.value))
        assert TOKEN not in said
        assert WRITTEN not in said


def test_none_is_named() -> None:
    with pytest.raises(ConfigError, match="Add a host, or url or url_file to its extra"):
        url()
