"""Each thing that keeps a machine from being set up is one line that says what to do."""

import socket
from pathlib import Path

import pytest

from bootstrap import Problem, doctor
from bootstrap.__main__ import main
from stack import ports


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Put a `java` on an otherwise empty PATH that answers as given."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))

    def install(says: str, code: int = 0, home: str = "") -> Path:
        folder = tmp_path / home / "bin"
        folder.mkdir(parents=True, exist_ok=True)
        fake = folder / "java"
        fake.write_text(f"#!/bin/sh\necho '{says}' >&2\nexit {code}\n")
        fake.chmod(0o755)
        return fake

    return install


@pytest.mark.parametrize(
    ("says", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "21" 2023-09-19 LTS', 21),
    ],
)
def test_java_that_spark_runs_on_is_accepted(java, says, version):
    fake = java(says)
    assert doctor.find_java() == (str(fake), version)


def test_java_8_numbers_itself_otherwise(java):
    fake = java('java version "1.8.0_392"')
    with pytest.raises(Problem) as caught:
        doctor.find_java()
    assert str(caught.value) == (f"Java 8 found ({fake}), but 17 or 21 is needed: install one and set JAVA_HOME to it")


@pytest.mark.usefixtures("java")
def test_no_java():
    with pytest.raises(Problem, match=r"^no Java found: install Java 17 or 21 .* JAVA_HOME"):
        doctor.find_java()


@pytest.mark.parametrize(("says", "code"), [("Unable to locate a Java Runtime", 1), ("gij 1.5", 0)])
def test_java_that_is_none(java, says, code):
    java(says, code)
    with pytest.raises(Problem, match=r"install Java 17 or 21 and set JAVA_HOME to it$"):
        doctor.find_java()


def test_java_home_goes_before_path(java, tmp_path, monkeypatch):
    java('openjdk version "11.0.2"')
    chosen = java('openjdk version "21.0.1"', home="jdk21")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk21"))
    assert doctor.find_java() == (str(chosen), 21)


def test_java_home_without_java_is_not_passed_over(java, tmp_path, monkeypatch):
    java('openjdk version "17.0.1"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nothing"))
    with pytest.raises(Problem, match=r"^JAVA_HOME is .*nothing, where there is no bin/java"):
        doctor.find_java()


def test_wrong_python():
    with pytest.raises(Problem, match=r"^Python 3\.12 found, but 3\.11 is needed"):
        doctor.check_python((3, 12))


def test_folder_that_cannot_be_written(tmp_path):
    with pytest.raises(Problem, match=r"^cannot write in .*gone \(No such file or directory\)"):
        doctor.check_writable(tmp_path / "gone")


def test_taken_port_is_named_with_the_setting_that_changes_it():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(Problem, match=rf"^port {port} is taken: .*make SPARK_PORT=auto up$"):
            ports.choose(port, "SPARK_PORT")


def test_port_is_chosen_when_asked():
    assert doctor.port_free(ports.choose("auto", "SPARK_PORT"))


def test_port_that_is_no_number():
    with pytest.raises(Problem, match=r"^SPARK_PORT is spark, but must be a number or auto$"):
        ports.choose("spark", "SPARK_PORT")


@pytest.mark.usefixtures("java")
def test_command_prints_one_line_and_fails(capsys):
    assert main(["doctor"]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("clickjoin: no Java found")
    assert printed.err.count("\n") == 1
