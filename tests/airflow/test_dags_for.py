"""One DAG file of a user's own makes all DAGs of a folder; an adapter that cannot be imported is an import error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowFailException, DownstreamTasksSkipped

from checks.blocks import code
from clickjoin.config import OfPipeline, load
from clickjoin.model.dags import OF_EVERY_JOIN
from clickjoin.model.errors import ConfigError
from clickjoin_airflow import dags_for, pipelines, require_readable
from clickjoin_airflow.group_operator import GroupOperator
from clickjoin_airflow.lineage import place
from clickjoin_airflow.pipelines import PipelineFileError

WritePipeline = Callable[..., Path]
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _by_argument(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CLICKJOIN_PIPELINES", raising=False)


@pytest.fixture
def adapters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on the path, and nothing of it left in this process."""
    known = set(sys.modules)
    folder = tmp_path / "adapters"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    yield folder
    for name in set(sys.modules) - known:
        if name.startswith("shop_"):
            del sys.modules[name]


def test_all_dags_of_a_folder(tmp_path: Path, write_pipeline: WritePipeline) -> None:
    for name in ("ads", "clicks"):
        write_pipeline(tmp_path, name)
    (tmp_path / "half.yaml").write_text("pipeline: [")
    dags = dags_for(str(tmp_path))
    assert dags.keys() == {f"clickjoin_{dag}__{name}" for dag in OF_EVERY_JOIN for name in ("ads", "clicks")} | {
        "clickjoin_join__half"
    }
    assert all(isinstance(dag, DAG) and dag.dag_id == name for name, dag in dags.items())


def test_the_files_of_the_docs(tmp_path: Path, write_pipeline: WritePipeline) -> None:
    """docs/packages.md: one file that makes the DAGs, and one that says what is wrong with a pipeline's file."""
    write_pipeline(tmp_path, "ads")
    made, checked = (text.replace("/etc/pipelines", str(tmp_path)) for text in code("packages.md", "python", 2))
    names: dict[str, Any] = {}
    exec(made, names)
    assert isinstance(names["clickjoin_join__ads"], DAG)
    exec(checked, {})
    (tmp_path / "half.yaml").write_text("pipeline: [")
    with pytest.raises(PipelineFileError, match="half"):
        exec(checked, {})


def test_only_some_of_a_folder_that_the_environment_names(
    tmp_path: Path, write_pipeline: WritePipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_pipeline(tmp_path, "ads")
    path.write_text(path.read_text() + "airflow: {dags: [join, gc]}\n")
    monkeypatch.setenv("CLICKJOIN_PIPELINES", str(tmp_path))
    assert dags_for("/nowhere").keys() == {"clickjoin_join__ads", "clickjoin_gc__ads"}
    assert dags_for("/nowhere", "gc", "verify").keys() == {"clickjoin_gc__ads"}


def test_one_stream_has_no_dags_of_retries(tmp_path: Path, write_pipeline: WritePipeline) -> None:
    path = write_pipeline(tmp_path, "ads")
    one = yaml.safe_load(path.read_text())
    one |= {"stream": {name: one["foreign"][name] for name in ("source", "event_id", "event_time")}}
    path.write_text(yaml.safe_dump({name: one[name] for name in one if name not in ("primary", "foreign", "retry")}))
    pipeline = load(path)
    assert dags_for(tmp_path).keys() == {
        f"clickjoin_{dag}__ads" for dag in OF_EVERY_JOIN if dag not in ("retry", "redrive")
    }
    read = pipelines.read(path)
    assert (read.joined.name, read.joined.uri) == ("ads/deduplicated", f"file://{pipeline.root}/deduplicated")
    assert place(read.tables, "joined") == ("file", f"{pipeline.root}/deduplicated")
    reader = {"kind": "pipeline", "name": "ads", "output": "deduplicated"}
    path.with_name("more.yaml").write_text(
        yaml.safe_dump({"pipeline": "more", "lake": one["lake"], "stream": one["stream"] | {"source": reader}})
    )
    (upstream,) = pipelines.read(path.with_name("more.yaml")).upstream_outputs
    assert upstream == read.joined
    (item,) = load(path.with_name("more.yaml")).inputs
    assert isinstance(item.source, OfPipeline)
    assert (item.source.path, item.source.json_columns) == (f"{pipeline.root}/deduplicated", ("record",))


def test_a_folder_that_is_not_there_is_an_import_error_and_takes_no_dag_away_in_silence(tmp_path: Path) -> None:
    with pytest.raises(PipelineFileError, match=r"none: is no folder; name the one that holds"):
        dags_for(tmp_path / "none")
    with pytest.raises(PipelineFileError, match=r"'joins' is no DAG; choose of join, retry"):
        dags_for(tmp_path, "joins")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "shop_broken has no class Priced"),
        ("class Priced:\n    pass\n", "is no Adapter"),
        ("import no_such_library\n", "cannot be imported .*no_such_library"),
        ("def broken(:\n", r"cannot be imported \(SyntaxError"),
        ("raise RuntimeError('no rates')\n", r"cannot be imported \(RuntimeError: no rates\)"),
    ],
)
def test_a_broken_adapter_is_an_import_error(
    tmp_path: Path, write_pipeline: WritePipeline, adapters: Path, text: str, words: str
) -> None:
    (adapters / "shop_broken.py").write_text(text)
    write_pipeline(tmp_path / "files", "clicks")
    write_pipeline(tmp_path / "files", "ads", adapter="shop_broken:Priced")
    with pytest.raises(PipelineFileError, match=rf"(?s)ads\.yaml: adapter shop_broken:Priced: .*{words}") as found:
        require_readable(tmp_path / "files")
    assert "clicks.yaml" not in str(found.value)
    assert "clickjoin_join__ads" in dags_for(tmp_path / "files")  # its first task says the same


def test_an_adapter_that_is_nowhere_and_one_from_a_folder(
    tmp_path: Path, write_pipeline: WritePipeline, adapters: Path
) -> None:
    write_pipeline(tmp_path / "files", "ads", adapter="shop_priced:Priced")
    with pytest.raises(PipelineFileError, match="No module named 'shop_priced'"):
        require_readable(tmp_path / "files")
    (adapters / "shop_priced.py").write_text(
        "from clickjoin.joiner.adapter import BothRecords\n\n\nclass Priced(BothRecords):\n    pass\n"
    )
    require_readable(tmp_path / "files")


def in_group(path: Path, group: str, more: str = "") -> Path:
    path.write_text(f"{path.read_text()}airflow: {{group: {group}{more}}}\n")
    return path


def test_a_group_is_joined_by_one_task(tmp_path: Path, write_pipeline: WritePipeline) -> None:
    ads = in_group(write_pipeline(tmp_path, "ads", lease="5s"), "shops")
    clicks = in_group(write_pipeline(tmp_path, "clicks", lease="9s"), "shops", ", dags: [join, retry, gc]")
    write_pipeline(tmp_path, "alone")
    dags = dags_for(tmp_path)
    own = {f"clickjoin_{dag}__ads" for dag in OF_EVERY_JOIN if dag not in ("join", "retry")}
    own |= {f"clickjoin_{dag}__clicks" for dag in ("retry", "gc")}
    alone = {f"clickjoin_{dag}__alone" for dag in OF_EVERY_JOIN}
    assert dags.keys() == {"clickjoin_join_group__shops"} | own | alone
    dag = dags["clickjoin_join_group__shops"]
    task, failed = dag.tasks
    assert isinstance(task, GroupOperator)
    assert (task.downstream_task_ids, failed.trigger_rule) == ({"failed"}, "all_success")
    assert (task.config, list(task.members)) == (f"{ads}:{clicks}", ["ads", "clicks"])
    assert [asset.name for asset in task.outlets] == ["ads/joined", "clicks/joined"]
    assert dag.schedule == timedelta(seconds=9)
    assert dag.max_active_runs == 2
    assert dag.max_consecutive_failed_dag_runs == 0
    assert task.arguments == {"hands_over": True}
    assert task.execution_timeout == timedelta(seconds=5 * 9, minutes=10)
    assert pipelines.find(tmp_path).group_of("ads") == "shops"
    assert pipelines.find(tmp_path).group_of("alone") == pipelines.find(tmp_path).group_of("none") == ""
    assert "clickjoin_join_group__shops" in dags_for(tmp_path, "join")
    assert [load(path).airflow.group for path in (ads, clicks)] == ["shops", "shops"]


@pytest.mark.parametrize(
    ("group", "more", "message"),
    [
        ("Shops", "", "airflow.group: 'Shops' is no name"),
        ("[a]", "", r"airflow.group: \['a'\] is no name"),
        ("shops", ", dags: [gc]", "airflow.group: is for a pipeline that is joined; add join"),
    ],
)
def test_a_group_that_is_none(
    tmp_path: Path, write_pipeline: WritePipeline, group: str, more: str, message: str
) -> None:
    path = in_group(write_pipeline(tmp_path, "ads"), group, more)
    with pytest.raises(ValueError, match=message):
        pipelines.read(path)
    with pytest.raises(ConfigError, match="group"):
        load(path)
    assert dags_for(tmp_path).keys() == {"clickjoin_join__ads"}


class _Pulled:
    """As far as the operator asks a task instance."""

    dag_id, run_id, try_number = "clickjoin_join_group__shops", "r", 1

    def __init__(self, before: Any) -> None:
        self.before = before

    def xcom_pull(self, *, task_ids: str, map_indexes: int, include_prior_dates: bool) -> Any:
        assert (task_ids, map_indexes, include_prior_dates) == ("join", -1, True)
        return self.before


@pytest.mark.parametrize(
    ("before", "succeeded", "known"),
    [(None, None, ""), ({"known": ["ads", "new"]}, NOON, "ads new"), ({"known": []}, NOON, ""), (None, NOON, "ads")],
)
def test_who_has_worked_before_is_known_from_the_run_before(
    tmp_path: Path, write_pipeline: WritePipeline, before: Any, succeeded: datetime | None, known: str
) -> None:
    in_group(write_pipeline(tmp_path, "ads"), "shops")
    task, _ = dags_for(tmp_path, "join")["clickjoin_join_group__shops"].tasks
    task.lease = ""  # type: ignore[attr-defined]
    run = task._run({"ti": _Pulled(before), "prev_start_date_success": succeeded})  # type: ignore[attr-defined]
    assert run.arguments == {"hands_over": True, "known": known}


def test_only_those_that_joined_anything_tell_who_waits(tmp_path: Path, write_pipeline: WritePipeline) -> None:
    for name in ("ads", "clicks"):
        in_group(write_pipeline(tmp_path, name), "shops")
    task, _ = dags_for(tmp_path, "join")["clickjoin_join_group__shops"].tasks
    ads, _ = outlets = task.outlets
    events = {outlet: SimpleNamespace(extra={}) for outlet in outlets}
    summary = {"joined": 7, "pipelines": {"ads": {"joined": 7, "problems": []}, "clicks": {"joined": 0}}}
    task._announce({"outlet_events": events}, summary)  # type: ignore[attr-defined]
    assert task.outlets == [ads]
    assert events[ads].extra == {"joined": 7, "replica": task.replica}  # type: ignore[attr-defined]


def test_only_a_group_where_some_failed_has_a_failed_task(tmp_path: Path, write_pipeline: WritePipeline) -> None:
    in_group(write_pipeline(tmp_path, "ads"), "shops")
    task, failed = dags_for(tmp_path, "join")["clickjoin_join_group__shops"].tasks
    pushed: dict[str, Any] = {}
    ti = SimpleNamespace(
        xcom_push=lambda key, value: pushed.__setitem__(key, value), xcom_pull=lambda **_: {"verdict": "ads: gone"}
    )
    with pytest.raises(DownstreamTasksSkipped) as skipped:
        task._returned(ti, {"ok": True})  # type: ignore[attr-defined]
    assert (skipped.value.tasks, pushed) == (["failed"], {"return_value": {"ok": True}})
    assert task._returned(ti, {"ok": False}) == {"ok": False}  # type: ignore[attr-defined]
    with pytest.raises(AirflowFailException, match="ads: gone"):
        failed.execute({"ti": ti})  # type: ignore[typeddict-item]
