"""What the command line says of itself: tables, the file, jobs, help."""

from __future__ import annotations

import json

from clickjoin.config import reference
from clickjoin.jobs.all_jobs import JOBS
from clickjoin.schemas import ALL


def test_schema(run) -> None:
    code, out, err = run("schema")
    assert (code, err) == (0, "")
    for table in ALL:
        assert f"{table.name}: " in out
        assert all(column.name in out for column in table.columns)


def test_schema_as_json(run) -> None:
    _, out, _ = run("schema", "--json")
    assert {name: [c["name"] for c in columns] for name, columns in json.loads(out).items()} == {
        table.name: table.names for table in ALL
    }


def test_schema_as_markdown(run) -> None:
    _, out, _ = run("schema", "--markdown")
    assert out.startswith("# Tables\n")
    assert all(f"\n## {table.name}\n" in out for table in ALL)


def test_schema_of_the_file(run) -> None:
    code, out, _ = run("schema", "--config-file")
    assert code == 0
    schema = json.loads(out)
    assert set(schema["required"]) == {"pipeline", "lake"}
    assert [set(one["required"]) for one in schema["oneOf"]] == [{"primary", "foreign"}, {"stream"}]


def test_jobs_as_json(run) -> None:
    code, out, _ = run("schema", "--jobs", "--json")
    assert (code, list(json.loads(out))) == (0, list(JOBS))
    wait = json.loads(out)["gc"]["arguments"]["wait"]
    assert (wait["type"], wait["default"], wait["minimum"], wait["required"]) == ("number", 60.0, 0, False)
    assert run("schema", "--jobs", "--markdown")[0] == 2


def test_the_fields_of_the_file_as_markdown(run) -> None:
    code, out, _ = run("schema", "--config-file", "--markdown")
    assert (code, out) == (0, f"{reference.markdown()}\n")


def test_one_kind_of_schema_at_a_time(run) -> None:
    for other in ("--jobs", "--json"):
        code, out, err = run("schema", "--config-file", other)
        assert (code, out if other != "--json" else "") == (2, "")
        assert f"--config-file does not go with {other}" in err


def test_help_names_every_command(run) -> None:
    _, out, _ = run("--help")
    for name in [
        "init", "validate", "run", "drain", "retry", "redrive", "status", "explain", "schema", "generate", "gc",
        "reshard", "quarantine", "pending", "unjoinable", "expired",
    ]:  # fmt: skip
        assert name in out
