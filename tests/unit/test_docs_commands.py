"""Commands of the documentation: clickjoin, make and the benchmarks take each as it stands, and those of pages run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from checks.blocks import blocks, code, pages
from checks.words import ROOT
from clickjoin.cli.main import app
from tests.unit.test_recipes import Reader, Run

SHOP = """\
pipeline: shop
lake: lake
engine: arrow
primary: {source: {kind: files, path: "logs/queries/*.jsonl"}, event_id: id, event_time: at}
foreign:
  source: {kind: files, path: "logs/clicks/*.jsonl"}
  event_id: id
  event_time: at
  primary_id: query
  primary_time: {lookback: 1h}
"""
QUERY = '{{"id": "q{0}", "at": "2026-03-01T12:00:{0:02}Z", "user": {{"id": "U{0}"}}}}\n'
CLICK = '{{"id": "c{0}", "at": "2026-03-01T12:01:{0:02}Z", "query": "q{0}", "user_id": "U{0}", "item_id": 17}}\n'


def write(folder: Path, file: str = SHOP) -> None:
    """Logs of 30 clicks on as many queries, and the pipeline's file if there is one."""
    for name, line in (("queries", QUERY), ("clicks", CLICK)):
        (folder / "logs" / name).mkdir(parents=True)
        (folder / "logs" / name / "a.jsonl").write_text("".join(map(line.format, range(30))))
    if file:
        (folder / "shop.yaml").write_text(file)


@pytest.fixture
def reader(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Reader:
    """Who stands in a folder with logs and shop.yaml, as what is joined."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path)
    reader = Reader(run, tmp_path)
    reader.command("clickjoin drain -c shop.yaml")
    return reader


def follow(reader: Reader, texts: list[str], **instead: str) -> list[str]:
    """What each command of blocks prints; `instead` is written for what the page leaves to its reader."""
    text = "".join(texts).replace("\\\n", " ")
    for word, other in instead.items():
        assert word in text
        text = text.replace(word, other)
    return [reader.command(line) for line in text.splitlines()]


def test_what_did_not_join(reader: Reader) -> None:
    assert all(follow(reader, code("cli.md", "sh")))


def test_the_way_back(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, SHOP.replace("primary_id: query", "primary_id: qurey"))
    assert run("drain", "-c", "shop.yaml")[0] == 1
    (tmp_path / "shop.yaml").write_text(SHOP)
    assert "- joined: 30\n" in follow(Reader(run, tmp_path), code("bad-input.md", "sh"))[2]


def test_a_backup(reader: Reader) -> None:
    text = [text.replace("/mnt/", f"{reader.folder}/") for text in code("backup.md", "sh")]
    assert len(follow(reader, text)) == 2


def test_a_person_is_forgotten(reader: Reader) -> None:
    follow(reader, code("forget.md", "sh"))
    assert "forgotten" in follow(reader, code("troubleshooting.md", "sh"), ID="c17")[1]


def test_a_file_from_logs(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "")
    assert "no problem found" in follow(Reader(run, tmp_path), code("logs.md", "sh"))[1]


def test_processing(reader: Reader) -> None:
    (file,) = [block.text for block in blocks(ROOT / "docs/processing.md") if block.language == "yaml"]
    (reader.folder / "trends.yaml").write_text(f"{file}engine: arrow\n")
    follow(reader, code("processing.md", "sh"))


def command_of(words: list[str]) -> tuple[str, Any, list[str]]:
    """Name, command and arguments of what the shell would run as clickjoin."""
    command: Any = typer.main.get_command(app)
    names: list[str] = []
    for word in words:
        members = getattr(command, "commands", {})
        if word not in members:
            break
        command, names = members[word], [*names, word]
    assert names, f"clickjoin has no command {words[:1]}"
    return " ".join(names), command, words[len(names) :]


def lines() -> Iterator[tuple[str, str]]:
    """Page and line of each command of a block, of those too that are not run."""
    for page in pages():
        for block in blocks(page):
            if block.language == "sh":
                for line in block.text.replace("\\\n", " ").splitlines():
                    yield block.page, line


def spans() -> Iterator[tuple[str, str]]:
    """Page and text of each command in a sentence."""
    for page in pages():
        text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        if "decisions" not in page.parts:
            yield from ((page.name, " ".join(span.split())) for span in re.findall(r"`([^`]+)`", text))


def unknown(words: list[str]) -> list[str]:
    """Options in a sentence's command that it does not have."""
    _, command, rest = command_of(words)
    known = {name for option in command.params for name in (*option.opts, *option.secondary_opts)} | {"--help"}
    given = [re.split(r"[=\]|]", word)[0].lstrip("[") for word in rest]
    return [word for word in given if word.startswith("-") and word.strip("-") and word not in known]


def clickjoin_in(text: str) -> list[str] | None:
    """Arguments of clickjoin in a line of a shell, None if it calls something else."""
    found = re.search(r"(?<!-n)(?:^|[ /])clickjoin ([a-z][^|&;]*)", text)
    return shlex.split(found[1], comments=True) if found else None


def take(line: str) -> None:
    """Parse a line's arguments as clickjoin does."""
    name, command, rest = command_of(clickjoin_in(line) or [])
    command.make_context(name, rest)


@pytest.mark.parametrize(("page", "line"), [each for each in lines() if clickjoin_in(each[1])])
def test_a_line_is_taken(page: str, line: str) -> None:
    take(line)


def test_options_in_sentences_are_there() -> None:
    found = [(page, text, clickjoin_in(text)) for page, text in spans() if re.match(r"clickjoin [a-z]", text)]
    assert len(found) > 50
    assert [(page, text) for page, text, words in found if words and unknown(words)] == []


def source_of(module: str) -> str:
    """A benchmark's code, with that of the others that it imports."""
    file = ROOT / "benchmarks" / f"{module}.py"
    text = "".join(path.read_text() for path in ([file] if file.exists() else file.with_suffix("").glob("*.py")))
    others = set(re.findall(r"^from benchmarks\.(\w+) import", text, flags=re.MULTILINE)) - {module}
    return text + "".join(map(source_of, others))


def test_make_and_benchmarks_take_them() -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    for page, text in (*lines(), *spans()):
        text = text.partition("#")[0]
        for make in re.findall(r"(?:^|&& )(?:[A-Z]+=\S+ )*make ([^&|]+)", text):
            assert {word for word in make.split() if re.fullmatch(r"[a-z0-9-]+", word)} <= targets, (page, text)
        for module, rest in re.findall(r"-m benchmarks\.(\w+)(.*)", text):
            source = source_of(module)
            assert [word for word in re.findall(r"--[\w-]+", rest) if f'"{word}"' not in source] == [], (page, text)


@pytest.mark.parametrize(
    "line",
    ["clickjoin drian -c a", "clickjoin drain -c a --fast", "clickjoin verify --config", "clickjoin drain"],
)
def test_a_command_that_is_gone_is_found(line: str) -> None:
    with pytest.raises(Exception, match=r"no command|No such option|requires|Missing"):
        take(line)


def test_an_option_of_a_sentence_that_is_gone_is_found() -> None:
    assert unknown(["drain", "--config", "F", "[--fast]"]) == ["--fast"]
