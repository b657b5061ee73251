"""Records in a text: notifications, logs of containers, queues' messages; proposed where ids or times lie in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from clickjoin.config import load
from clickjoin.proposal.file import propose, propose_one
from clickjoin.report.validate import Validation, validate
from tests.unit.proposal_bench import CLICKS, QUERIES, iso, lines

SHOWN = [{"query_id": q.name, "at": iso(q.at), "kind": "query", "rank": q.number % 7} for q in QUERIES]
CLICKED = [{"click_id": c.name, "query_id": c.query.name, "at": iso(c.at), "kind": "click"} for c in CLICKS]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a log of queries."""
    for name in ("queries", "clicks"):
        (tmp_path / name).mkdir()
    lines(tmp_path / "queries" / "q.jsonl", SHOWN)
    return tmp_path


def sns(record: Any, number: int) -> dict[str, Any]:
    """As SNS wraps what is published."""
    sent = f"2026-11-30T00:00:{number % 60:02}.{number % 997:03}Z"
    return {"Type": "Notification", "MessageId": f"m{number}", "Message": json.dumps(record), "Timestamp": sent}


def proposed(folder: Path, primary: str = "queries/*", foreign: str = "clicks/*") -> tuple[str, Validation]:
    """The text of the file, and what validate finds."""
    text = propose(primary, foreign, folder).text
    (folder / "p.yaml").write_text(text)
    return text, validate(load(folder / "p.yaml"))


def test_notifications(folder: Path) -> None:
    """The record's own id and time come before those of what carries it; confirmations are passed over."""
    wrapped: list[dict[str, Any]] = [sns(record, number) for number, record in enumerate(CLICKED)]
    confirm = {
        "Type": "SubscriptionConfirmation",
        "MessageId": "s",
        "Message": "You have chosen",
        "Timestamp": iso(CLICKS[0].at),
    }
    lines(folder / "clicks" / "c.jsonl", [*wrapped, *(confirm | {"MessageId": f"s{n}"} for n in range(30))])
    text, found = proposed(folder)
    assert "json: [Message]}" in text
    assert found.matches
    assert (found.problems, found.matches.foreign, found.matches.found) == ([], len(CLICKS), len(CLICKS))
    foreign = load(folder / "p.yaml").foreign
    assert foreign
    assert (foreign.event_id, foreign.event_time) == (("Message.click_id",), "Message.at")
    assert found.samples["foreign"].bad == ()


def test_containers_logs_of_both_streams(folder: Path) -> None:
    """One log, with plain lines in it: what is no JSON is of neither stream."""
    records: list[dict[str, Any]] = [*SHOWN, *CLICKED]
    both = sorted(records, key=lambda record: str(record["at"]))
    docker: list[dict[str, Any]] = [
        {"log": json.dumps(record) + "\n", "stream": "stdout", "time": iso(QUERIES[0].at)} for record in both
    ]
    docker[50:50] = [{"log": "INFO started\n", "stream": "stderr", "time": iso(QUERIES[0].at)}] * 20
    lines(folder / "clicks" / "c-json.log", docker)
    text, found = proposed(folder, "clicks/*", "clicks/*")
    assert text.count("json: [log]}") == 2
    assert found.problems == []
    assert found.matches
    assert found.matches.found == len(CLICKS)


def test_messages_of_a_queue(folder: Path) -> None:
    """Texts in texts, in an array's elements."""
    sent = [
        {"messageId": f"x{number}", "body": json.dumps(sns(record, number))} for number, record in enumerate(CLICKED)
    ]
    lines(folder / "clicks" / "c.jsonl", [{"Records": sent[at : at + 10]} for at in range(0, len(sent), 10)])
    text, found = proposed(folder)
    assert 'records: Records, json: [body, "body.Message"]}' in text
    assert found.matches
    assert (found.problems, found.matches.found) == ([], len(CLICKS))


def test_an_array_in_a_text(folder: Path) -> None:
    batches = [{"Records": CLICKED[at : at + 10]} for at in range(0, len(CLICKED), 10)]
    lines(folder / "clicks" / "c.jsonl", [sns(batch, number) for number, batch in enumerate(batches)])
    text, found = proposed(folder)
    assert 'records: "Message.Records", json: [Message]}' in text
    assert found.matches
    assert (found.problems, found.matches.found) == ([], len(CLICKS))


def test_a_text_in_which_no_id_lies_stays_one(folder: Path) -> None:
    lines(folder / "clicks" / "c.jsonl", [{**click, "more": '{"a": {"id": 1}}'} for click in CLICKED])
    text, found = proposed(folder)
    assert found.problems == []
    assert "json:" not in text
    column = load(folder / "p.yaml").output.columns["more"]
    assert (column.source, column.type) == ("foreign.more", "STRING")


def test_one_stream(folder: Path) -> None:
    lines(folder / "clicks" / "c.jsonl", [{"stream": "stdout", "log": json.dumps(click)} for click in CLICKED])
    text = propose_one("clicks/*", folder).text
    (folder / "p.yaml").write_text(text)
    assert "json: [log]}" in text
    assert validate(load(folder / "p.yaml")).problems == []


def test_a_table(folder: Path) -> None:
    """There it is `json_columns`."""
    rows = [{"key": f"k{number}", "value": json.dumps(click)} for number, click in enumerate(CLICKED)]
    write_deltalake(str(folder / "t"), pa.Table.from_pylist(rows))
    text, found = proposed(folder, foreign="table:t")
    assert "json_columns: [value]}" in text
    assert found.matches
    assert (found.problems, found.matches.found) == ([], len(CLICKS))
