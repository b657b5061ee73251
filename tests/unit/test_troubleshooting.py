"""What docs/troubleshooting.md says that a person sees: each symptom is produced on small logs and compared with it."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/troubleshooting.md").read_text(encoding="utf-8")
FILE = """
pipeline: shop
lake: lake
engine: arrow
primary:
  source: {kind: files, path: "logs/views/*.jsonl"}
  event_id: id
  event_time: at
foreign:
  source: {kind: files, path: "logs/clicks/*.jsonl"}
  event_id: id
  event_time: at
  primary_id: view
  primary_time: {lookback: 2h}
"""

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a pipeline beside logs of 30 views and 30 clicks, in the folder that this process is in."""
    for name, row in (("views", '{{"id": "v{0}", "at": "2025-03-01T10:00:00Z"}}'),
                      ("clicks", '{{"id": "c{0}", "at": "2025-03-01T10:00:10Z", "view": "v{0}"}}')):  # fmt: skip
        (tmp_path / "logs" / name).mkdir(parents=True)
        (tmp_path / "logs" / name / "a.jsonl").write_text("".join(row.format(n) + "\n" for n in range(30)))
    file = tmp_path / "shop.yaml"
    file.write_text(FILE)
    monkeypatch.chdir(tmp_path)
    return file


def seen(symptom: str, out: str, part: str) -> None:
    """Check that a part of the page quotes this, and that a command has printed it; `…` stands for anything."""
    section = re.split(r"^## ", PAGE, flags=re.MULTILINE)
    (text,) = [each for each in section if each.startswith(part)]
    assert f"`{symptom}`" in text
    pattern = ".*".join(map(re.escape, symptom.split("…")))
    assert re.search(pattern, out, flags=re.DOTALL), out


@pytest.mark.parametrize(
    ("was", "now", "symptom"),
    [
        ("view\n  primary_time", "veiw\n  primary_time", "none of 30 records has a field …"),
        ("primary_id: view", "primary_id: id", "they name such as …, and primary ids are such as …"),
        ("lookback: 2h", "lookback: 5s", "although ids agree: … its own time is …"),
        (
            "event_time: at\nforeign",
            'event_time: {column: at, format: "%Y-%m-%dT%H:%M:%SZ", zone: Etc/GMT+1}\nforeign',
            "the primary events lie about 1 h after their clicks",
        ),
        ("clicks/*.jsonl", "clicks/*.json", "no file matches …"),
        ("logs/clicks", "logs/click", "folder … does not exist"),
    ],
)
def test_nothing_joins(run: Run, shop: Path, was: str, now: str, symptom: str) -> None:
    assert was in FILE
    shop.write_text(FILE.replace(was, now))
    code, out, err = run("validate", "-c", shop)
    assert code == 1
    seen(symptom, out + err, "Nothing joins")
    assert "- joined: 0\n" in run("drain", "-c", shop)[1]


def test_one_event_says_why(run: Run, shop: Path) -> None:
    (shop.parent / "logs/views/a.jsonl").write_text('{"id": "v9", "at": "2025-03-01T10:00:00Z"}\n')
    run("drain", "-c", shop)
    seen("Its primary event 'v1' has not landed", run("explain", "c1", "-c", shop)[1], "Nothing joins")


def test_a_date_stays_open(run: Run, shop: Path) -> None:
    run("drain", "-c", shop)
    close = ("close", "2025-03-01", "-c", shop)
    code, out, err = run(*close)
    assert code == 1
    seen("all read, its newest event is of …; at rest once nothing came for 900 s", out + err, "My date")
    shop.write_text(FILE + "close: {idle_timeout: 0.01s}\n")
    with (shop.parent / "logs/clicks/a.jsonl").open("a") as log:
        log.write('{"id": "c99", "at": "2025-03-01T10:00:10Z", "view": "none"}\n')
    run("drain", "-c", shop)
    seen("1 of its events wait for their primary event (c99), until the last is given up at about …",
         "".join(map(str, run(*close))), "My date")  # fmt: skip
    with (shop.parent / "logs/clicks/a.jsonl").open("a") as log:
        log.write('{"id": "c100", "at": "2025-03-01')
    run("drain", "-c", shop)
    seen("…/a.jsonl: unread from … on", "".join(map(str, run(*close))), "My date")


def test_no_watermark(run: Run, shop: Path) -> None:
    run("drain", "-c", shop)
    out = run("status", "-c", shop)[1]
    assert "- watermark: none" in out
    seen("where logs are loaded once, set batch.heartbeats: true", out, "The watermark")
    shop.write_text(FILE + "batch: {heartbeats: true}\n")
    run("drain", "-c", shop)
    assert "- watermark: 2025-03-01 09:50:00+00:00" in run("status", "-c", shop)[1]


@pytest.mark.parametrize(
    ("was", "now", "symptom"),
    [
        ("view\n  primary_time", "veiw\n  primary_time", "problem: quarantined"),
        ("2h}\n", "2h}\noutput: {columns: {n: {from: foreign.view, type: BIGINT}}}\n", "problem: misfits"),
        ("lookback: 2h", "lookback: 5s", "problem: nothing-joined"),
    ],
)
def test_drain_ends_with_1(run: Run, shop: Path, was: str, now: str, symptom: str) -> None:
    shop.write_text(FILE.replace(was, now))
    code, out, err = run("drain", "-c", shop)
    assert code == 1
    seen(symptom, out + err, "drain ends")
    seen("something is wrong: see above", out + err, "drain ends")


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("primary_id: view\n  primary_time: {lookback: 2h}", "match: {on: {foreign: id, primary: id}, within: 2h}"),
        ("clicks/*.jsonl", "clicks/b.jsonl"),  # of 19 clicks
        ("views/*.jsonl", "views/b.jsonl"),
    ],
)
def test_nothing_has_joined_yet(run: Run, shop: Path, was: str, now: str) -> None:
    """Clicks by a key wait until views have passed them; of fewer than 20 nothing is concluded."""
    for name in ("views", "clicks"):
        rows = (shop.parent / f"logs/{name}/a.jsonl").read_text().splitlines(keepends=True)
        (shop.parent / f"logs/{name}/b.jsonl").write_text("".join(rows[:19]))
    shop.write_text(
        FILE.replace("*.jsonl", "a.jsonl")
        .replace("lookback: 2h", "lookback: 5s")
        .replace(was.replace("*", "a").replace("2h", "5s"), now)
    )
    code, out, _ = run("drain", "-c", shop)
    assert (code, "- joined: 0\n" in out) == (0, True)


def test_a_file_that_is_corrected_later(run: Run, shop: Path) -> None:
    """What has landed keeps its time: validate says so, and nothing of a lake whose rows are as the file says."""
    form = 'event_time: {column: at, format: "%Y-%m-%dT%H:%M:%SZ", zone: Etc/GMT+1}\nforeign'
    shop.write_text(FILE.replace("event_time: at\nforeign", form))
    run("drain", "-c", shop)
    shop.write_text(FILE)
    code, out, err = run("validate", "-c", shop)
    assert (code, "30 sampled records have landed, 1 h off what the file says now" in out + err) == (1, True)
    seen("landed rows keep their time", out + err, "Nothing joins")
    assert "is probably wrong, or was when it landed" in run("explain", "c1", "-c", shop)[1]
    shop.write_text(FILE.replace("pipeline: shop", "pipeline: again"))
    assert (run("drain", "-c", shop)[0], run("validate", "-c", shop)[0]) == (0, 0)


def test_rows_that_are_gone(run: Run, shop: Path) -> None:
    run("drain", "-c", shop)
    DeltaTable("lake/shop/joined").delete("event_id >= 'c20'")
    code, out, err = run("drain", "-c", shop)
    assert code == 1
    seen("agree no", out + err, "drain ends")
    dates = "--from 2025-03-01 --to 2025-03-02"
    seen("ids are in no table", out, "drain ends")
    assert f"17 ids are in no table: run `clickjoin verify --repair {dates}`" in out
    gone = run("explain", "c20", "-c", shop)[1]
    seen("Its row is gone from …", gone, "A row is missing")
    assert f"`clickjoin verify --repair {dates}`" in gone


def test_a_condition_that_matches_nothing(run: Run, shop: Path) -> None:
    shop.write_text(FILE.replace("foreign:\n", "foreign:\n  where: {kind: clik}\n"))
    seen("problem: took-nothing", "".join(map(str, run("drain", "-c", shop))), "It is green")


def test_every_problem_of_a_source_is_there() -> None:
    code = "".join(path.read_text() for path in (ROOT / "spark_apps/clickjoin").rglob("*.py"))
    kinds = set(re.findall(r'Problem\(\s*"([a-z-]+)"', code))
    assert len(kinds) > 8
    assert [kind for kind in kinds if f"| `{kind}` |" not in PAGE] == []


def literals() -> str:
    """Every text of the library and of Airflow's part, with `…` where a value stands, a line each."""
    found = []
    for java in (ROOT / "infra/logstore").rglob("*.java"):
        found += re.findall(r'"([^"]*)"', java.read_text())
    for folder in ("spark_apps/clickjoin", "plugins/clickjoin_airflow"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.JoinedStr):
                    found.append("".join(part.value if isinstance(part, ast.Constant) else "…" for part in node.values))
                elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                    found.append(node.value)
    return "\n".join(found)


def test_every_message_is_one_that_is_given() -> None:
    code, part = literals(), PAGE.partition("## Messages")[2]
    quoted = [
        text for row in re.findall(r"^\| (`.*?) \|", part, re.MULTILINE) for text in re.findall(r"`([^`]+)`", row)
    ]
    assert len(quoted) > 15
    airflows = {"Tasks using non-existent pool"}
    pieces = {text: [piece.strip() for piece in text.split("…") if len(piece.strip()) > 3] for text in quoted}
    assert [
        text for text, some in pieces.items() if text not in airflows and not all(one in code for one in some)
    ] == []
