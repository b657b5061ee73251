"""Addresses that stand in for credentials: signed with those of now."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest
from botocore.credentials import Credentials

from clickjoin.lake.objects import make_client
from clickjoin.model.places import store_of
from clickjoin.sources.s3.bucket import Signer


@pytest.mark.parametrize(("token", "sent"), [("", []), ("of-a-role", ["of-a-role"])])
def test_a_token_is_sent_where_there_is_one(monkeypatch: pytest.MonkeyPatch, token: str, sent: list[str]) -> None:
    """An empty one, as some agents of containers give it out, is none: a store refuses it."""
    monkeypatch.setattr("botocore.session.Session.get_credentials", lambda _: Credentials("key", "secret", token))
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    client = make_client(store_of("s3://any"))
    url = urlsplit(Signer(client, "logs", 60).url("clicks/a b.jsonl"))
    assert url.path == "/logs/clicks/a%20b.jsonl"
    assert parse_qs(url.query, keep_blank_values=True).get("X-Amz-Security-Token", []) == sent
    client.close()
